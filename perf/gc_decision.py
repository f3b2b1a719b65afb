"""`python -m perf.gc_decision`: time and memory for garbage collection to decide which ledgers of a bookie to delete.

Fills an embedded metadata store with `--ledgers` ledgers, all of which the bookie has, plus `--gone` deleted ones, and
lets the collector list, compare, verify and delete without a rate limit. Deletion itself is only counted, because the
decision is measured. Memory is the growth of anonymous pages, sampled every 10 ms; pages of the store's file are
counted separately. Prints one JSON object.
"""

import json
import shutil
import threading
import time
from pathlib import Path

import click
import lmdb
import numpy as np

from bookie.metadata import open_driver
from bookie.metadata.key_value.embedded import MAP_BYTES, RECORD
from bookie.metadata.records.ledger_codec import serialize_ledger
from bookie.metadata.records.ledger_metadata import LedgerMetadata, Segment
from bookie.server.storage.own_ledgers import LedgersOfBookie
from bookie.storage.garbage.counters import Counters, OfDirectory
from bookie.storage.garbage.decision import Ids
from bookie.storage.garbage.ledgers import LedgerCollector
from bookie.storage.garbage.settings import GarbageSettings
from perf.side_by_side.card import ROOT

DATA = ROOT / "build/perf/gc-decision"
BOOKIE = "10.0.0.1:3181"
SAMPLE_S = 0.01


class Listed:
    """A stand-in for a ledger directory, which has only ledger ids."""

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self.deleted = 0

    def ledger_ids(self) -> Ids:
        return self.ids

    def delete_ledgers(self, ledgers: Ids) -> None:
        self.deleted += ledgers.size

    def drop_fences(self, before_ms: int) -> int:  # noqa: ARG002  # none of these ledgers was fenced
        return 0


class Memory(threading.Thread):
    """Samples the peak memory of this process, in bytes, while the thread runs."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.anonymous = self.mapped = 0
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(SAMPLE_S):
            anonymous, mapped = now()
            self.anonymous, self.mapped = max(self.anonymous, anonymous), max(self.mapped, mapped)

    def end(self) -> None:
        """Stop sampling."""
        self._over.set()
        self.join()


def now() -> tuple[int, int]:
    """Return the resident bytes: anonymous ones, and those of mapped files."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    return tuple(int(lines[name].split()[0]) << 10 for name in ("RssAnon", "RssFile"))  # type: ignore[return-value]


def fill(directory: Path, ledgers: int) -> None:
    """Write the records of many ledgers in few transactions."""
    shutil.rmtree(directory, ignore_errors=True)
    driver = open_driver(f"lmdb://{directory}")
    driver.start()
    driver.cluster.initialize()
    driver.stop()
    segment = Segment(0, (BOOKIE, "10.0.0.2:3181", "10.0.0.3:3181"))
    metadata = LedgerMetadata(ensemble_size=3, write_quorum=3, ack_quorum=2, segments=(segment,), password=b"p" * 16)
    value = RECORD.pack(0, 1_700_000_000_000) + serialize_ledger(metadata)
    with lmdb.open(str(directory), map_size=MAP_BYTES) as store:
        for first in range(0, ledgers, 100_000):
            with store.begin(write=True) as txn:
                for ledger in range(first, min(first + 100_000, ledgers)):
                    txn.put(b"ledgers/%019d" % ledger, value, append=False)


@click.command(help=__doc__)
@click.option("--ledgers", default=1_000_000, show_default=True)
@click.option("--gone", default=1000, show_default=True)
def main(ledgers: int, gone: int) -> None:
    fill(DATA, ledgers)
    driver = open_driver(f"lmdb://{DATA}")
    driver.start()
    instance = driver.cluster.instance_id()
    directory = Listed(np.arange(ledgers + gone, dtype=np.int64))
    settings = GarbageSettings(metadata_reads_per_s=1 << 30)
    collector = LedgerCollector(
        settings,
        [directory],
        LedgersOfBookie(driver, [BOOKIE]),
        lambda: instance,
        lambda: True,
        Counters([OfDirectory()]),
        threading.Event(),
    )
    before = now()
    memory = Memory()
    memory.start()
    begun = time.monotonic()
    assert collector.run(over_replicated=False, mass_deletion=False)
    seconds = time.monotonic() - begun
    memory.end()
    driver.stop()
    assert directory.deleted == gone
    shutil.rmtree(DATA)
    found = {
        "ledgers": ledgers,
        "gone": gone,
        "seconds": round(seconds, 3),
        "anonymous_mb": round((memory.anonymous - before[0]) / 1e6, 1),
        "mapped_store_mb": round((memory.mapped - before[1]) / 1e6, 1),
    }
    click.echo(json.dumps(found))


if __name__ == "__main__":
    main()
