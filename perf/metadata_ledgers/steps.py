"""The steps that are measured. `python -m perf.metadata_ledgers.steps STEP URI LEDGERS` runs one in this process."""

import asyncio
import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from bookie.client.bookies.stores import MetadataStore
from bookie.client.replication.settings import RecoverySettings
from bookie.client.replication.walking import each_ledger
from bookie.metadata import open_driver
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.records.ledger_metadata import DigestType, LedgerMetadata, LedgerState, Segment
from bookie.server.storage.own_ledgers import LedgersOfBookie
from bookie.storage.garbage.counters import Counters, OfDirectory
from bookie.storage.garbage.ledgers import LedgerCollector
from bookie.storage.garbage.settings import GarbageSettings
from perf.gc_decision import Listed

BOOKIE = "10.0.0.1:3181"
METADATA = LedgerMetadata(
    ensemble_size=3,
    write_quorum=3,
    ack_quorum=2,
    segments=(Segment(0, (BOOKIE, "10.0.0.2:3181", "10.0.0.3:3181")),),
    state=LedgerState.CLOSED,
    length=1 << 20,
    last_entry=1023,
    digest_type=DigestType.CRC32C,
)
SESSION_MS = 60_000
GONE = 1000
"""Ledgers that the bookie has and the store does not."""


# Each step returns how many ledgers it handled.


def listing(driver: MetadataDriver, ledgers: int) -> int:
    """List the ledgers, as `bkadmin listledgers` does."""
    found = sum(len(page) for page in driver.ledgers.ranges())
    assert found == ledgers, found
    return found


def collection(driver: MetadataDriver, ledgers: int) -> int:
    """Decide which ledgers of a bookie to delete that has all of the store's, and some that are gone."""
    directory = Listed(np.arange(ledgers + GONE, dtype=np.int64))
    instance = driver.cluster.instance_id()
    collector = LedgerCollector(
        GarbageSettings(metadata_reads_per_s=1 << 30), [directory], LedgersOfBookie(driver, [BOOKIE]),
        lambda: instance, lambda: True, Counters([OfDirectory()]), threading.Event(),
    )  # fmt: skip
    assert collector.run(over_replicated=False, mass_deletion=False)
    assert directory.deleted == GONE, directory.deleted
    return ledgers


def auditing(driver: MetadataDriver, ledgers: int) -> int:
    """Read the metadata of each ledger, as each check of the auditor does."""
    visited = 0

    async def visit(_ledger: int, metadata: LedgerMetadata) -> None:
        nonlocal visited
        assert metadata.ensemble_size == METADATA.ensemble_size
        visited += 1

    async def run() -> None:
        store = MetadataStore(driver)
        try:
            await each_ledger(store, visit, at_once=RecoverySettings().ledgers_at_once)
        finally:
            await store.close()

    asyncio.run(run())
    assert visited == ledgers, visited
    return visited


def reads(driver: MetadataDriver, ledgers: int) -> int:
    """Read some ledgers one by one."""
    some = range(0, ledgers, max(1, ledgers // 2000))
    for ledger in some:
        driver.ledgers.read(ledger)
    return len(some)


def creates(driver: MetadataDriver, ledgers: int) -> int:
    """Create 20,000 ledgers from 16 threads; they are deleted with the store."""
    some = range(ledgers, ledgers + 20_000)
    with ThreadPoolExecutor(16) as pool:
        for _ in pool.map(lambda ledger: driver.ledgers.create(ledger, METADATA), some):
            pass
    return len(some)


STEPS = {"list": listing, "collect": collection, "audit": auditing, "read": reads, "create": creates}


def one_step(step: str, uri: str, ledgers: int) -> None:
    """Run a step in this process, and print what it took."""
    driver = open_driver(uri, session_timeout_ms=SESSION_MS)
    driver.start()
    before, own_before = memory_kib("VmRSS"), memory_kib("RssAnon")
    begun, cpu = time.monotonic(), time.process_time()
    count = STEPS[step](driver, ledgers)
    seconds, cpu_s = time.monotonic() - begun, time.process_time() - cpu
    row = {"step": step, "store": uri.partition(":")[0], "ledgers": count, "seconds": round(seconds, 2)}
    row |= {"cpu_s": round(cpu_s, 2), "rate": round(count / seconds)}
    row |= {"rss_mib_before": before >> 10, "rss_mib": memory_kib("VmHWM") >> 10}
    row |= {"own_mib_before": own_before >> 10, "own_mib": memory_kib("RssAnon") >> 10}
    print(json.dumps(row), flush=True)
    if step != "audit":  # its store has ended the driver
        driver.stop()


def memory_kib(field: str) -> int:
    """Return a number of this process's memory, in KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


if __name__ == "__main__":
    one_step(sys.argv[1], sys.argv[2], int(sys.argv[3]))
