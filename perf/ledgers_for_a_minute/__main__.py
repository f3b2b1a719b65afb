"""`python -m perf.ledgers_for_a_minute`: adds to many ledgers in turn for a minute, on our bookie and on Java's.

Entries of 1 KiB, 1,000 outstanding, V2, an empty bookie with caches of 512 MiB, once for each number of ledgers.
Appends a JSON line for each minute to perf/results/ledgers_for_a_minute.jsonl, with what each part of it took;
`perf.ledgers_for_a_minute.table` makes a table of them.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import click

from perf.ledgers_for_a_minute.table import RESULTS
from perf.side_by_side.card import ROOT, append, machine_card
from perf.side_by_side.drive import bkload
from perf.side_by_side.java_bookie import JavaServer
from perf.side_by_side.servers import OurBookie, Server
from perf.side_by_side.sessions import SIZE, fresh, io_bytes

DATA = ROOT / "build/perf/minute"
ENTRIES_A_PART = 1_000_000
"""Of each ledger; more than a part writes, so that no entry is written twice."""


def measure(server: Server, ledgers: int, parts: int, seconds: float) -> list[dict[str, Any]]:
    """Return the figures of each part. A part may write to disk what the one before it has added."""
    server.start()
    figures = []
    for part in range(parts):
        before = io_bytes(server.pid, "write_bytes")
        found = bkload("add", port=server.port, pid=server.pid, size=SIZE, outstanding=1000, ledgers=ledgers,
                       seconds=seconds, first_entry=part * ENTRIES_A_PART)  # fmt: skip
        figures.append({
            "adds_s": round(found["entries_s"]), "p99_us": found["latency_us"]["p99"],
            "cpu_s_per_million": found["server"]["cpu_s_per_million"], "rss_mb": found["server"]["rss_mb"],
            "written_mb": round((io_bytes(server.pid, "write_bytes") - before) / 1e6, 1),
        })  # fmt: skip
    return figures


@click.command(help=__doc__)
@click.option("--ledgers", default="10,10000,100000", show_default=True, help="Numbers of ledgers.")
@click.option("--pairs", default=1, show_default=True, help="Minutes of each bookie.")
@click.option("--parts", default=6, show_default=True)
@click.option("--seconds", default=10.0, show_default=True, help="Of each part.")
@click.option("--directory", default=DATA, show_default=True, type=click.Path(path_type=Path, resolve_path=True))
@click.option("--results", default=RESULTS, show_default=True, type=click.Path(path_type=Path), help="Where lines go.")
def main(ledgers: str, pairs: int, parts: int, seconds: float, directory: Path, results: Path) -> None:
    """Measure both bookies, one after the other."""
    directory.mkdir(parents=True, exist_ok=True)
    card = machine_card(directory)
    for pair in range(pairs):
        for many in map(int, ledgers.split(",")):
            for kind in ("ours", "java") if pair % 2 == 0 else ("java", "ours"):
                server: Server = OurBookie(fresh(directory)) if kind == "ours" else JavaServer(fresh(directory))
                try:
                    figures = measure(server, many, parts, seconds)
                finally:
                    server.stop()
                    shutil.rmtree(directory, ignore_errors=True)
                row = {"ledgers": many, "bookie": kind, "pair": pair, "seconds": seconds, "parts": figures}
                print(json.dumps(row), flush=True)
                append(results, {**row, "card": card})


if __name__ == "__main__":
    main()
