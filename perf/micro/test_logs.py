"""Entry logs and journals: appending and syncing to the disk, scanning from the page cache, in bytes per second.

The cost of a sync is that of the disk, so compare runs on one machine only.
"""

import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bookie._fast.entrylog.scan import scan_chunk
from bookie._fast.entrylog.writer import EntryLog
from bookie._fast.journal.reader import scan_journal
from tests.reference import journal

BYTES = 16 << 20
SIZES = [128, 1024, 65536]


def entries_of(ledger: int, size: int, total: int) -> list[bytes]:
    """Return entries of `size` bytes, `total` bytes in all."""
    payload = random.Random(ledger).randbytes(size - 16)
    return [struct.pack(">qq", ledger, entry) + payload for entry in range(total // size)]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EntryLog]:
    """Open a writer with logs that are small enough not to fill the disk."""
    yield EntryLog(tmp_path, size_limit=64 << 20)
    for path in tmp_path.glob("*.log"):
        path.unlink()


@pytest.mark.parametrize("size", SIZES)
def test_append_and_sync(benchmark: BenchmarkFixture, log: EntryLog, size: int) -> None:
    """Measure the writes of a checkpoint: 16 ledgers of 1 MiB each, then one sync, including building the runs in
    Python.
    """
    ledgers = [entries_of(ledger, size, BYTES // 16) for ledger in range(16)]

    def checkpoint() -> None:
        for ledger, entries in enumerate(ledgers):
            log.append(ledger, entries)
        log.sync()

    benchmark.extra_info["bytes"] = BYTES
    benchmark.pedantic(checkpoint, rounds=10, warmup_rounds=1)  # type: ignore[no-untyped-call]


def test_sync_of_one_entry(benchmark: BenchmarkFixture, log: EntryLog) -> None:
    """Measure the minimum of a sync: the last block, written again."""
    entries = iter(range(1 << 30))

    def sync() -> None:
        log.append(1, [struct.pack(">qq", 1, next(entries)) + bytes(100)])
        log.sync()

    benchmark(sync)


@pytest.mark.parametrize("size", SIZES)
def test_scan_of_a_log(benchmark: BenchmarkFixture, tmp_path: Path, size: int) -> None:
    """Scan every record of a closed log of 16 MiB."""
    log = EntryLog(tmp_path)
    entries = entries_of(1, size, BYTES)
    log.append(1, entries)
    log.rotate()
    benchmark.extra_info["bytes"] = BYTES
    assert len(benchmark(scan_chunk, tmp_path / "0.log").ledger) == len(entries)


@pytest.mark.parametrize("size", SIZES)
def test_scan_of_a_journal(benchmark: BenchmarkFixture, tmp_path: Path, size: int) -> None:
    """Scan every record of a journal of 16 MiB in groups of 512 KiB, and verify their checksums."""
    entries = entries_of(1, size, BYTES // 32)
    group = b"".join(struct.pack(">i", len(entry)) + entry for entry in entries)
    (tmp_path / "1.txn").write_bytes(journal.build([group] * 32, 1, 4096))
    benchmark.extra_info["bytes"] = BYTES
    found = benchmark(scan_journal, tmp_path / "1.txn", 1)
    assert (found.groups, found.records) == (32, 32 * len(entries))
