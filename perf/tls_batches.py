"""`python -m perf.tls_batches`: batch reads from cache over TLS, from Apache BookKeeper's bookie and ours in turn.

Both use the same certificate and are read by the same client over one connection. The client is pinned to the last
CPU, the bookie to the others; the client decrypts with the system's OpenSSL. Prints one JSON object.
"""

import json
import shutil
import statistics
from collections.abc import Callable
from pathlib import Path

import click

from perf.cpu import spent_by
from perf.load.build import build_all
from perf.side_by_side.card import ROOT
from perf.side_by_side.drive import CLIENT_CPU, bkload, kept_apart, program
from perf.side_by_side.java_bookie import JavaServer
from perf.side_by_side.servers import OurBookie, Server
from tests.fixtures.certificates import Authority

DATA = ROOT / "build/perf/tls-batches"
SIZE = 1024
ENTRIES = 100_000


def tls_keys(directory: Path) -> dict[str, str]:
    """Create a certificate and return the settings with which either bookie uses it."""
    party = Authority(directory).issue("bookie", hosts=["127.0.0.1"], with_rsa=True)
    return {
        "tlsProviderFactoryClass": "org.apache.bookkeeper.tls.TLSContextFactory",
        "tlsProvider": "OpenSSL",
        "tlsKeyStoreType": "PEM",
        "tlsKeyStore": str(party.key),
        "tlsCertificatePath": str(party.certificate),
    }


def measure(server: Server, batch: int, outstanding: int, seconds: float) -> dict[str, object]:
    """Measure a running bookie: entry bytes per second, and its CPU seconds per gigabyte."""
    before = spent_by([server.pid])
    with kept_apart(server.pid):
        done = program("tls_batches", server.port, 0, ENTRIES, batch, outstanding, seconds, CLIENT_CPU)
    used = spent_by([server.pid]) - before
    return {**done, "server_cpu_s_per_gb": round(used / (done["mb_s"] * (seconds + 1) / 1000), 3)}


@click.command()
@click.option("--pairs", default=3, show_default=True, help="Number of measurements of each bookie.")
@click.option("--batch", default=100, show_default=True, help="Number of entries of 1 KiB in a batch.")
@click.option("--outstanding", default=4, show_default=True, help="Number of outstanding requests.")
@click.option(
    "--seconds", default=4.0, show_default=True, help="Duration of each measurement, after a second of warm-up."
)
@click.option("--directory", default=DATA, show_default=True, type=click.Path(path_type=Path))
def main(pairs: int, batch: int, outstanding: int, seconds: float, directory: Path) -> None:
    """Measure batch reads over TLS from both bookies."""
    build_all()
    shutil.rmtree(directory, ignore_errors=True)
    keys = tls_keys(directory / "keys")
    starts: dict[str, Callable[[], Server]] = {
        "java": lambda: JavaServer(directory / "java", keys),
        "ours": lambda: OurBookie(directory / "ours"),
    }
    results: dict[str, list[dict[str, object]]] = {}
    for name, make in starts.items():
        server = make()
        server.start(keys)
        try:
            bkload("fill", port=server.port, size=SIZE, outstanding=1000, ledgers=1, entries=ENTRIES)
            measure(server, batch, outstanding, seconds)  # a warm-up for the JVM's compiler
            results[name] = [measure(server, batch, outstanding, seconds) for _ in range(pairs)]
        finally:
            server.stop()
    shutil.rmtree(directory, ignore_errors=True)
    rates = {name: statistics.median(float(str(one["mb_s"])) for one in runs) for name, runs in results.items()}
    print(json.dumps({"batch": batch, **rates, "ratio": round(rates["ours"] / rates["java"], 2), "runs": results}))


if __name__ == "__main__":
    main()
