"""A journal group from its first append to its published number: the cost of an add besides its bytes, and the sync.

Workloads: groups of 1, 100 and 5,000 records of 1 KiB. Each append is a call from Python, so large groups show the
cost of appends, small ones that of a commit.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bookie._fast.base.file import Files
from bookie._fast.journal.commit import JournalCommitter
from bookie._fast.store.direct import JournalWriter

MIB = 1 << 20
RECORD = bytes(1024)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[JournalWriter]:
    """Open a journal that syncs each group."""
    committer = JournalCommitter(
        str(tmp_path),
        Files(),
        buffer_bytes=32 * MIB,
        alignment_bytes=4096,
        file_bytes_max=1024 * MIB,
        prealloc_bytes=64 * MIB,
        backups_max=0,
        group_wait_ms=0,
        group_bytes=MIB,
        group_entries=0,
        flush_when_empty=True,
        sync_data=True,
        reuse_files=True,
    )
    committer.open(1, [])
    writer = JournalWriter(committer)
    yield writer
    writer.close()
    committer.close()


@pytest.mark.parametrize("records", [1, 100, 5000])
def test_group(benchmark: BenchmarkFixture, writer: JournalWriter, records: int) -> None:
    """Measure appending, closing, writing, syncing and publishing a group."""

    def group() -> None:
        for _ in range(records):
            writer.append(RECORD)
        assert writer.commit()

    benchmark.extra_info["records"] = records
    benchmark.pedantic(group, rounds=20, warmup_rounds=1)  # type: ignore[no-untyped-call]
