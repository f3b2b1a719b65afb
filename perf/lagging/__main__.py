"""`python -m perf.lagging`: readers that lag behind the writers by a part or a multiple of the write cache.

Entries of 1 KiB are added to many ledgers in turn. While another writer goes on, what was written a tenth or a quarter
of the write cache ago, or once, twice or four times all of it, is read: single entries in random order with 64
outstanding, and batches with four. Our bookie and Apache BookKeeper's take turns, each with caches of 512 MiB and in
an empty directory. With `--memory scarce`, the pages of the entry logs are dropped before each row, as where other
programs need the memory. Prints one JSON object per row, then a table of the medians. With `--record` each object is
also appended to perf/results/lagging.jsonl; `python -m perf.lagging.table` prints the table of the last such run again.
"""

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click

from perf.lagging.table import RESULTS, Row, table
from perf.side_by_side.card import ROOT, append, machine_card
from perf.side_by_side.drive import bkload, drop_pages
from perf.side_by_side.java_bookie import JavaServer
from perf.side_by_side.servers import CACHE_MIB, OurBookie, Server
from perf.side_by_side.sessions import ENTRY_BYTES, SIZE, fresh

DATA = ROOT / "build/perf/lagging"
LAGS = (0.1, 0.25, 1.0, 2.0, 4.0)
"""In write caches."""
ELSEWHERE = 1 << 30
"""The first ledger of the writer that goes on."""
WRITER: dict[str, Any] = {"rate": 10_000, "outstanding": 1000, "ledgers": 10, "first_ledger": ELSEWHERE}
BATCH = 10


def in_cache(lag: float, ledgers: int) -> int:
    """Return how many entries of each ledger are as many bytes as so many write caches."""
    return int(lag * (CACHE_MIB << 20) / ENTRY_BYTES / ledgers)


def first_of_window(total: int, lag: int, window: int, written: int) -> int:
    """Return the first entry to read in each ledger of `total` entries, so that the window ends `lag` entries before
    the newest; `written` more a ledger went to other ledgers since, which count. It is at most the last window.
    """
    return total - max(0, lag - written) - window


def measure(server: Server, memory: str, ledgers: int, window: int, seconds: float) -> Iterator[dict[str, Any]]:
    """Fill a bookie, and yield a row for each lag and kind of read, from the newest entries to the oldest."""
    server.start()
    written = 0
    total = in_cache(max(LAGS), ledgers) + 2 * window
    bkload("add", port=server.port, size=SIZE, outstanding=1000, ledgers=ledgers, count=total * ledgers)
    for lag in LAGS:
        for kind in ("random", "batches"):
            where: dict[str, Any] = {
                "port": server.port,
                "size": SIZE,
                "ledgers": ledgers,
                "first_entry": first_of_window(total, in_cache(lag, ledgers), window, written // ledgers),
                "entries": window,
            }
            if memory == "scarce":
                drop_pages(server.entry_logs())
            with ThreadPoolExecutor(1) as beside:
                writing = beside.submit(bkload, "add", port=server.port, size=SIZE, seconds=seconds, **WRITER)
                words: tuple[str, ...]
                load: dict[str, Any]
                if kind == "random":
                    words, load = ("read", "--random"), {"outstanding": 64, "count": window * ledgers}
                else:
                    words, load = ("batch",), {"outstanding": 4, "batch": BATCH, "count": window * ledgers // BATCH}
                done = bkload(*words, pid=server.pid, **where, **load, seconds=seconds)
                written += writing.result()["entries"]
            yield {"lag": lag, "kind": kind, "entries_s": done["entries_s"], "cpu": done["server"]["cpu_s_per_million"]}


@click.command(help=__doc__)
@click.option("--pairs", default=3, show_default=True, help="Measurements of each bookie.")
@click.option("--memory", multiple=True, type=click.Choice(["enough", "scarce"]), default=("enough", "scarce"))
@click.option("--ledgers", default=1000, show_default=True)
@click.option("--window", default=60, show_default=True, help="Entries of each ledger that a row reads.")
@click.option("--seconds", default=5.0, show_default=True, help="The longest time for a row, and that of the writer.")
@click.option("--record", is_flag=True, help="Append the results to perf/results/lagging.jsonl.")
@click.option("--directory", default=DATA, show_default=True, type=click.Path(path_type=Path, resolve_path=True))
def main(
    pairs: int, memory: tuple[str, ...], ledgers: int, window: int, seconds: float, directory: Path, *, record: bool
) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    card = machine_card(directory)
    rows: list[Row] = []
    for pair in range(pairs):
        for amount in memory:
            for subject in ("ours", "java") if pair % 2 == 0 else ("java", "ours"):
                server: Server = OurBookie(fresh(directory)) if subject == "ours" else JavaServer(fresh(directory))
                try:
                    for row in measure(server, amount, ledgers, window, seconds):
                        found = {"pair": pair, "subject": subject, "memory": amount, **row}
                        rows.append(found)
                        print(json.dumps(found), flush=True)
                        if record:
                            append(RESULTS, {**found, "card": card})
                finally:
                    server.stop()
                    shutil.rmtree(directory, ignore_errors=True)
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
