"""`python -m perf.client.sticky`: cold reads of ledgers on three bookies, with sticky reads and without, in turn.

Three bookies in this process hold each entry; their write caches were flushed, so every ledger is read from entry logs.
Each run reads ledgers of its own with `read`, and with calls of `batch_read` for 100 entries: both kinds in turn, with
and without `stickyReadSEnabled`. Prints one JSON object per kind: disk reads and bytes read by all bookies, and entries
per second.
"""

import json
import shutil
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click

from bookie.client import BookKeeper
from perf.side_by_side.card import ROOT
from tests.fixtures.whole_bookie import Running, whole_bookie

DATA = ROOT / "build/perf/sticky"
ENTRIES, PAYLOAD, BATCH = 9000, 1024, 100
COUNTERS = ("pybookie_disk_reads_total", "pybookie_disk_read_bytes_total")


@contextmanager
def three(directory: Path) -> Iterator[list[Running]]:
    """Run three bookies, the first of which owns the metadata store."""
    with ExitStack() as stack:
        running: list[Running] = []
        for name in ("one", "two", "three"):
            shutil.rmtree(directory / name, ignore_errors=True)
            (directory / name).mkdir(parents=True)
            store = {"metadataServiceUri": running[0].uri} if running else {}
            running.append(stack.enter_context(whole_bookie(directory / name, adminPort="0", bookieId=name, **store)))
        yield running


def counted(running: list[Running]) -> list[float]:
    """Return the sums of COUNTERS over all bookies."""
    families = [{family.name: family for family in one.bookie.metrics()} for one in running]
    return [sum(sample.value for found in families for sample in found[name].samples) for name in COUNTERS]


def measure(running: list[Running], ledger: int, *, sticky: bool, batches: bool) -> dict[str, float]:
    """Read one cold ledger to its end."""
    with BookKeeper(running[0].uri, sticky_reads=sticky, callTimeoutSec=600) as bk, bk.open_ledger(ledger) as reader:
        before, began = counted(running), time.monotonic()
        if batches:
            at = 0
            while at < ENTRIES:
                at = reader.batch_read(at, max_count=BATCH).last + 1
        else:
            assert len(reader.read(0, ENTRIES - 1)) == ENTRIES
        seconds = time.monotonic() - began
    reads, size = (now - then for now, then in zip(counted(running), before, strict=True))
    return {"disk_reads": reads, "read_per_served": size / (ENTRIES * PAYLOAD), "entries_per_second": ENTRIES / seconds}


@click.command()
@click.option("--pairs", default=5, show_default=True, help="Runs of each kind.")
@click.option("--directory", default=DATA, show_default=True, type=click.Path(path_type=Path))
def main(pairs: int, directory: Path) -> None:
    """Measure all kinds in turn, and print medians."""
    kinds = [(sticky, batches) for batches in (False, True) for sticky in (False, True)]
    with three(directory) as running:
        with BookKeeper(running[0].uri) as bk:
            ledgers = []
            for _ in range(pairs * len(kinds)):
                with bk.create_ledger(ensemble_size=3, write_quorum_size=3, ack_quorum_size=3) as writer:
                    for _ in range(ENTRIES):
                        writer.append_async(bytes(PAYLOAD))
                ledgers.append(writer.id)
        for one in running:
            one.bookie.checkpoint()
        rows: dict[tuple[bool, bool], list[dict[str, float]]] = {kind: [] for kind in kinds}
        for turn in range(pairs):
            for at, (sticky, batches) in enumerate(kinds):
                ledger = ledgers[turn * len(kinds) + at]
                rows[sticky, batches].append(measure(running, ledger, sticky=sticky, batches=batches))
        for (sticky, batches), found in rows.items():
            medians = {name: round(statistics.median(row[name] for row in found), 2) for name in found[0]}
            print(json.dumps({"call": "batch_read" if batches else "read", "sticky": sticky, **medians}), flush=True)
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
