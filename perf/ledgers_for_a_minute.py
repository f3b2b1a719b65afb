"""`python -m perf.ledgers_for_a_minute`: adds to many ledgers in turn for a minute, on our bookie and on Java's.

Entries of 1 KiB, 1,000 outstanding, V2, an empty bookie with caches of 512 MiB. Prints one JSON object for each
part of the time.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from perf.side_by_side.card import ROOT
from perf.side_by_side.drive import bkload
from perf.side_by_side.java_bookie import JavaServer
from perf.side_by_side.servers import OurBookie, Server

DATA = ROOT / "build/perf/minute"
ENTRIES_A_PART = 1_000_000
"""Of each ledger; more than a part writes, so that no entry is written twice."""


def measure(server: Server, ledgers: int, parts: int, seconds: float) -> Iterator[dict[str, Any]]:
    """Yield the figures of each part."""
    server.start()
    for part in range(parts):
        found = bkload("add", port=server.port, pid=server.pid, size=1024, outstanding=1000, ledgers=ledgers,
                       seconds=seconds, first_entry=part * ENTRIES_A_PART)  # fmt: skip
        yield {
            "part": part, "adds_s": round(found["ops_s"]), "p99_ms": found["latency_us"]["p99"] / 1000,
            "cpu_s_per_million": found["server"]["cpu_s_per_million"], "rss_mb": found["server"]["rss_mb"],
        }  # fmt: skip


@click.command(help=__doc__)
@click.option("--ledgers", default=100_000, show_default=True)
@click.option("--parts", default=6, show_default=True)
@click.option("--seconds", default=10.0, show_default=True, help="Of each part.")
@click.option("--directory", default=DATA, show_default=True, type=click.Path(path_type=Path, resolve_path=True))
def main(ledgers: int, parts: int, seconds: float, directory: Path) -> None:
    """Measure both bookies, one after the other."""
    for kind, make in (("ours", OurBookie), ("java", JavaServer)):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        server = make(directory)
        try:
            for row in measure(server, ledgers, parts, seconds):
                print(json.dumps({"bookie": kind, "ledgers": ledgers, **row}), flush=True)
        finally:
            server.stop()
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
