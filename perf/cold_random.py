"""`python -m perf.cold_random`: single reads in random order that no cache holds, compared with plain preads.

One ledger is written to a bookie, which is restarted for each row, with its files dropped from the page cache. Then
bkload reads single entries in random order with a number of them outstanding; before and after, a program without a
server reads records of the same size at random offsets of the same files, as many at a time. Prints one JSON object
per row; `ratio` is the rate of the plain program relative to the bookie. With one outstanding, a minimal server
(`lone_read`) that knows the location of each entry serves the same client too: `of_plain` is our share of its rate.
"""

import json
import shutil
from contextlib import nullcontext
from pathlib import Path

import click

from perf.side_by_side.card import ROOT
from perf.side_by_side.drive import Result, bkload, bound_server, drop_pages, kept_apart, program
from perf.side_by_side.servers import OurBookie
from perf.side_by_side.sessions import IN_LOG_BYTES, SIZE, fresh

DATA = ROOT / "build/perf/cold_random"


def cold(server: OurBookie) -> None:
    """Drop the entry logs and the index from the page cache."""
    drop_pages([*server.entry_logs(), *(p for d in server.index_directories() for p in d.rglob("*.mdb"))])


def read(port: int, pid: int, outstanding: int, count: int, entries: int) -> Result:
    """Measure single reads in random order; with one outstanding, client and server have a CPU each."""
    alone = outstanding == 1
    with kept_apart(pid) if alone else nullcontext():
        return bkload("read", "--random", *["--spin"] * alone, port=port, pid=pid, size=SIZE, entries=entries,
                      outstanding=outstanding, count=count, verify=101)  # fmt: skip


def plain(server: OurBookie, count: int, entries: int) -> float:
    """Return the reads per second of the minimal server."""
    with bound_server("lone_read", IN_LOG_BYTES, *server.entry_logs()) as (port, pid):
        return float(read(port, pid, 1, count, entries)["ops_s"])


def row(server: OurBookie, outstanding: int, count: int, entries: int, settings: dict[str, str]) -> dict[str, object]:
    """Measure the plain program, the bookie, and the plain program again, because the disk's own cache makes repeated
    reads faster.
    """
    bare = [program("random_read", outstanding, count, IN_LOG_BYTES, *server.entry_logs())["reads_s"]]
    served = [plain(server, count, entries)] if outstanding == 1 else []
    cold(server)
    server.start(settings)
    ours = read(server.port, server.pid, outstanding, count, entries)
    server.stop()
    if served:
        served.append(plain(server, count, entries))
    bare.append(program("random_read", outstanding, count, IN_LOG_BYTES, *server.entry_logs())["reads_s"])
    found = {"outstanding": outstanding, "ours_s": ours["ops_s"], "ours_us": ours["latency_us"],
             "server": ours["server"], "bare_s": bare, "ratio": round(sum(bare) / 2 / ours["ops_s"], 2)}  # fmt: skip
    if served:
        found |= {"plain_s": served, "of_plain": round(ours["ops_s"] * 2 / sum(served), 2)}
    return found


@click.command(help=__doc__)
@click.option("--entries", default=1_000_000, show_default=True, help="Number of entries in the ledger, of 1 KiB each.")
@click.option(
    "--count",
    default=20_000,
    show_default=True,
    help="Reads in each measurement. Keep it well below --entries, or the page cache serves both.",
)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A key of the bookie's configuration.")
@click.option("--keep", is_flag=True, help="Reuse the files of the last run, and keep them.")
@click.argument("depths", type=int, nargs=-1)
def main(*, entries: int, count: int, settings: tuple[str, ...], keep: bool, depths: tuple[int, ...]) -> None:
    """Measure a row for each of DEPTHS outstanding reads (default: 1, 8 and 64)."""
    if not keep or not DATA.exists():
        fresh(DATA)
    server = OurBookie(Path(DATA))
    try:
        if not server.entry_logs():
            server.start()
            bkload("fill", port=server.port, size=SIZE, outstanding=1000, entries=entries)
            server.stop()
        else:
            server.port = int((DATA / "port").read_text())
        (DATA / "port").write_text(str(server.port))
        for depth in depths or (1, 8, 64):
            print(json.dumps(row(server, depth, count, entries, dict(pair.split("=", 1) for pair in settings))))
    finally:
        server.stop()
        if not keep:
            shutil.rmtree(DATA)


if __name__ == "__main__":
    main()
