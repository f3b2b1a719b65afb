"""`python -m perf.scrape`: the cost of a scrape, and its effect on concurrent adds.

`size` starts a bookie with many directories, so that it has about ten thousand series, and times collecting and
writing them. `load` adds through `bkload`, in turn, to a bookie that is scraped ten times a second and to one that is
not. In both, the bookie and the server of the scrapes run in this process.
"""

import shutil
import statistics
import threading
import time
from pathlib import Path
from urllib.request import urlopen

import click

from bookie.metrics.text import write
from perf.side_by_side.card import ROOT
from perf.side_by_side.drive import bkload
from tests.fixtures.scraped import scraped
from tests.fixtures.whole_bookie import whole_bookie

DATA = ROOT / "build/perf/scrape"
SCRAPES = 50
PAUSE_S = 0.1
MIB_EACH = 20
"""MiB of caches and buffers per directory, so that two frames fit into each half."""


@click.group(help=__doc__)
def main() -> None:
    """Choose what to measure."""


@main.command()
@click.option("--directories", default=32, show_default=True, help="Number of ledger directories and of journals.")
def size(directories: int) -> None:
    """Measure the time of a scrape with many series."""
    fresh()
    each = MIB_EACH * directories
    settings = {
        "ledgerDirectories": ",".join(f"{DATA}/l{at}" for at in range(directories)),
        "journalDirectories": ",".join(f"{DATA}/j{at}" for at in range(directories)),
        "dbStorage_writeCacheMaxSizeMb": str(each),
        "dbStorage_readAheadCacheMaxSizeMb": str(each),
        "journalMaxMemorySizeMb": str(each),
        "dbStorage_indexMapSizeGb": "1",
        "memoryLimitMb": "16384",
        "prometheusStatsLatencyRolloverSeconds": "1",
    }
    with whole_bookie(DATA, **settings) as one:
        took, worked, series, page = [], [], 0, b""
        for _ in range(SCRAPES):
            begun, worked_before = time.perf_counter(), time.thread_time()
            families = one.bookie.metrics()
            page = write(families)
            took.append(1000 * (time.perf_counter() - begun))
            worked.append(1000 * (time.thread_time() - worked_before))
            series = sum(len(family.samples) for family in families)
        took.sort()
    click.echo(
        f"{series} series, {len(page) >> 10} KiB: median {statistics.median(took):.1f} ms, longest {took[-1]:.1f} ms;"
        f" of the processor {statistics.median(worked):.1f} ms, at least {min(worked):.1f} ms"
    )


@main.command()
@click.option("--seconds", default=5, show_default=True)
@click.option("--pairs", default=3, show_default=True)
@click.option("--outstanding", default=100, show_default=True)
def load(seconds: int, pairs: int, outstanding: int) -> None:
    """Measure the p99 of adds with and without a scrape ten times a second."""
    for pair in range(pairs):
        for scrapes in (False, True) if pair % 2 == 0 else (True, False):
            fresh()
            with whole_bookie(DATA) as one, scraped(one.bookie.metrics) as address:
                ended = threading.Event()
                thread = threading.Thread(target=scrape, args=(address, ended))
                if scrapes:
                    thread.start()
                found = bkload(
                    "add",
                    port=one.address[1],
                    size=1024,
                    outstanding=outstanding,
                    ledgers=10,
                    warmup=1,
                    seconds=seconds,
                )
                ended.set()
                if scrapes:
                    thread.join()
            click.echo(f"{'scraped' if scrapes else 'alone':8} {found}")


def scrape(address: str, ended: threading.Event) -> None:
    """Scrape ten times a second."""
    while not ended.wait(PAUSE_S):
        with urlopen(f"http://{address}/metrics", timeout=10) as answer:
            answer.read()


def fresh() -> None:
    """Create an empty directory for the bookie."""
    shutil.rmtree(DATA, ignore_errors=True)
    Path(DATA).mkdir(parents=True)


if __name__ == "__main__":
    main()
