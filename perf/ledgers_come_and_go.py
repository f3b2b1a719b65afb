"""`python -m perf.ledgers_come_and_go`: what the space of deleted ledgers costs until it is free again.

Each bookie begins on an empty directory. `--ledgers` ledgers are written, 200 at a time; every tenth stays, and the
metadata store does not know the others, so that they are deleted. Then one collection with a major compaction is forced
through the HTTP port. Our bookie is measured with a log for each ledger whose end is announced, and with one log for
all; Apache BookKeeper's with its one log. Prints one JSON object per bookie, then a table.

Descriptors and memory are maxima while ledgers were written. The disk space is that of the entry logs; what was copied
is by how much they grew in the collection, because Apache BookKeeper's compaction adds to the newest log.
"""

import http.client
import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from bookie.metadata import open_driver
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.records.ledger_metadata import LedgerMetadata, Segment
from perf.ledger_logs import BY_LEDGER, FLUSH_MS, Watch, write
from perf.side_by_side.card import ROOT
from perf.side_by_side.java_bookie import JavaServer
from perf.side_by_side.servers import OurBookie, Server, free_port
from tests.fixtures.java_peer import find_http_peer

DATA = ROOT / "build/perf/ledgers-come-and-go"
STAYS = 10
"""One of so many ledgers stays."""
MIB = 1 << 20
LOG_BYTES_MAX = 32 * MIB
COLLECTION_S_MAX = 900.0
LOOK_S = 0.05
KEYS = {
    "gcWaitTime": "86400000",
    "minorCompactionInterval": "86400",  # Apache BookKeeper refuses intervals that are shorter than gcWaitTime
    "majorCompactionInterval": "172800",
    "flushInterval": str(FLUSH_MS),
    "logSizeLimit": str(LOG_BYTES_MAX),
    "httpServerEnabled": "true",
}
JAVAS = {"httpServerClass": "org.apache.bookkeeper.http.vertx.VertxHttpServer", "httpServerHost": "127.0.0.1"}


@dataclass(frozen=True, slots=True)
class Subject:
    """A running bookie with its metadata store."""

    server: Server
    http_port: int
    store: MetadataDriver


@dataclass(frozen=True, slots=True)
class Run:
    """One row of the table."""

    bookie: str
    ledgers: int
    seconds: float
    """The time to write the ledgers."""
    descriptors: int
    resident_mib: int
    logs: int
    """The number of logs before the collection, as `disk_mib`."""
    disk_mib: float
    collection_s: float
    logs_left: int
    disk_left_mib: float
    copied_mib: float


@contextmanager
def ours(directory: Path, keys: dict[str, str]) -> Iterator[Subject]:
    """Run our bookie, which owns its metadata store."""
    bookie, admin, port = OurBookie(directory), free_port(), free_port()
    bookie.start({**KEYS, "httpServerPort": str(port), "adminPort": str(admin), "gcDeleteShareMax": "1", **keys})
    try:
        with connected(f"grpc://127.0.0.1:{admin}") as store:
            yield Subject(bookie, port, store)
    finally:
        bookie.stop()


@contextmanager
def javas(directory: Path) -> Iterator[Subject]:
    """Run Apache BookKeeper's bookie and ZooKeeper."""
    port = free_port()
    server = JavaServer(directory, {**KEYS, **JAVAS, "httpServerPort": str(port)}, find_http_peer())
    try:
        server.start()
        with connected(server.uri) as store:
            yield Subject(server, port, store)
    finally:
        server.stop()


@contextmanager
def connected(uri: str) -> Iterator[MetadataDriver]:
    """Open a metadata store."""
    driver = open_driver(uri)
    driver.start()
    try:
        yield driver
    finally:
        driver.stop()


def collect(port: int) -> float:
    """Force a collection with a major compaction; return its seconds.

    Raises:
        RuntimeError: It is refused, or not done in time.
    """
    began = time.monotonic()
    requested(port, "PUT", {"forceMajor": True, "forceMinor": False})
    while requested(port, "GET")["is_in_force_gc"] != "false":
        if time.monotonic() - began > COLLECTION_S_MAX:
            raise RuntimeError(f"the collection takes more than {COLLECTION_S_MAX:g} s")
        time.sleep(LOOK_S)
    return time.monotonic() - began


def requested(port: int, method: str, body: dict[str, bool] | None = None) -> dict[str, str]:
    """Send a request about the collection to the HTTP port; return what it says."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(method, "/api/v1/bookie/gc", json.dumps(body) if body else None)
        answer = connection.getresponse()
        text = answer.read().decode()
        if answer.status != http.client.OK:
            raise RuntimeError(f"{method} of the collection: {answer.status} {text}")
        return dict(json.loads(text)) if method == "GET" else {}


def register(store: MetadataDriver, ledgers: range, bookie: str) -> None:
    """Create the metadata of ledgers on this bookie."""
    metadata = LedgerMetadata(ensemble_size=1, write_quorum=1, ack_quorum=1, segments=(Segment(0, (bookie,)),))
    for ledger in ledgers:
        store.ledgers.create(ledger, metadata)


def measure(directory: Path, mode: str, ledgers: int, entries: int) -> Run:
    """Run one bookie and return its row."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    with MODES[mode](directory) as subject:
        server = subject.server
        register(subject.store, range(0, ledgers, STAYS), f"127.0.0.1:{server.port}")
        with Watch(server.pid, directory / "ledgers" / "current") as watch:
            began = time.monotonic()
            write(server.port, ledgers, entries, announce=mode == ANNOUNCED)
            written = time.monotonic() - began
            watch.settle()
            seen = asdict(watch.seen)
        before = {path: path.stat() for path in server.entry_logs()}
        took = collect(subject.http_port)
        after = {path: path.stat() for path in server.entry_logs()}
    shutil.rmtree(directory, ignore_errors=True)
    disk_mib, left_mib = (sum(one.st_blocks for one in found.values()) * 512 / MIB for found in (before, after))
    grown = (one.st_size - (before[path].st_size if path in before else 0) for path, one in after.items())
    copied_mib = sum(size for size in grown if size > 0) / MIB
    return Run(
        mode, ledgers, round(written, 1), seen["descriptors"], seen["resident_mib"], len(before), round(disk_mib, 1),
        round(took, 1), len(after), round(left_mib, 1), round(copied_mib, 1),
    )  # fmt: skip


ANNOUNCED = "ours, by ledger"
MODES: dict[str, Callable[[Path], AbstractContextManager[Subject]]] = {
    ANNOUNCED: lambda directory: ours(directory, BY_LEDGER),
    "ours, one for all": lambda directory: ours(directory, {}),
    "Java's, one for all": javas,
}


@click.command()
@click.option("--ledgers", default=100_000, show_default=True, help="Number of ledgers.")
@click.option("--java-ledgers", default=0, help="Number of ledgers for Java's bookie, if it is another one.")
@click.option("--entries", default=2, show_default=True, help="Number of entries per ledger, of 1000 bytes each.")
@click.option("--mode", "modes", multiple=True, type=click.Choice(list(MODES)), help="Run only this; may be repeated.")
@click.option("--directory", default=DATA, show_default=True, type=click.Path(path_type=Path, resolve_path=True))
def main(*, ledgers: int, java_ledgers: int, entries: int, modes: tuple[str, ...], directory: Path) -> None:
    """Measure what it takes to free the space of deleted ledgers."""
    runs = []
    for mode in modes or MODES:
        count = java_ledgers if java_ledgers and mode.startswith("Java") else ledgers
        runs.append(measure(directory, mode, count, entries))
        print(json.dumps(asdict(runs[-1])), flush=True)
    print("| logs | ledgers | adds, s | fds | RSS, MiB | logs | disk, MiB | collection, s | logs left | left, MiB"
          " | copied, MiB |")  # fmt: skip
    print("|---" * 11 + "|")
    for run in runs:
        values = asdict(run).values()
        print(f"| {' | '.join(f'{value:,}' if isinstance(value, int) else str(value) for value in values)} |")


if __name__ == "__main__":
    main()
