"""Test times and sizes by ledger directory (server.directory_ops): each request counts once, where its ledger is."""

from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest

from bookie._fast.base.op_stats import OpView, edges
from bookie._fast.server.directory_ops import DirectoryView
from bookie.client import Channel, ChannelV3, Digest
from bookie.errors import BookKeeperError, NoSuchEntry
from bookie.storage.settings import MIB
from tests.hostile.local import LocalBookie, local_bookie

DIGEST = Digest.of(password=b"")
OVERHEAD = 32 + 4
FENCE = 1
THROTTLE_MS = 50


def two_directories(base: Path) -> AbstractContextManager[LocalBookie]:
    """Run a bookie with two ledger directories. Even ledgers are in the first."""
    return local_bookie(base, ledger_directories=(base / "l0", base / "l1"))


def sizes(views: list[OpView]) -> dict[int, int]:
    """Return the number of entries by the lower edge of their size's bucket."""
    total = np.sum([np.frombuffer(view.buckets, np.int64) for view in views], axis=0)
    return {edges()[at]: int(count) for at, count in enumerate(total) if count}


def bucket(size: int) -> int:
    """Return the lower edge of the bucket that contains this size."""
    return max(edge for edge in edges() if edge <= size)


def times(views: list[DirectoryView]) -> dict[str, tuple[int, int]]:
    """Return the numbers of failed and successful operations, summed over all loops."""
    return {
        op: (sum(view.times[op][0].times for view in views), sum(view.times[op][1].times for view in views))
        for op in ("add", "blocked", "read", "last")
    }


def by_directory(bookie: LocalBookie) -> list[list[DirectoryView]]:
    """Return the views by directory, then by loop."""
    return [list(views) for views in zip(*bookie.port.directories(), strict=True)]


def test_each_counts_where_its_ledger_lies(tmp_path: Path) -> None:
    """Adds and reads of any kind, failed ones too, count in the directory of their ledger."""
    with two_directories(tmp_path) as bookie, Channel.connect(*bookie.address) as channel:
        for entry in range(10):
            channel.add(4, entry, b"x" * 100, digest=DIGEST, lac=entry - 1, length=1)
        channel.add(5, 0, b"x", digest=DIGEST, lac=-1, length=1)
        assert bookie.storage.checkpoint()
        channel.read(4, 3)
        channel.read(4, -1)
        assert len(channel.batch_read(4, 0, max_count=10)) == 10
        with pytest.raises(NoSuchEntry):
            channel.read(5, 1)
        channel.read_async(5, 0, flags=FENCE, master_key=DIGEST.master_key).result()
        wanted = [
            {"add": (0, 10), "blocked": (0, 0), "read": (0, 3), "last": (0, 1)},
            {"add": (0, 1), "blocked": (0, 0), "read": (1, 1), "last": (0, 0)},
        ]
        found = by_directory(bookie)
    assert [times(views) for views in found] == wanted
    assert all(view.times["read"][good].total >= view.times["read"][good].times
               for views in found for view in views for good in range(2))  # fmt: skip


def test_sizes_are_of_entries(tmp_path: Path) -> None:
    """Each add counts in the bucket of its size. The entries of a batch count in the bucket of their mean size, and
    the sum of sizes is exact.
    """
    lengths = [10, 10, 1000, 10, 50_000, 50_000]
    with two_directories(tmp_path) as bookie, Channel.connect(*bookie.address) as channel:
        adds = [
            channel.add_async(4, entry, b"x" * length, digest=DIGEST, lac=-1, length=1)
            for entry, length in enumerate(lengths)
        ]
        for future in adds:
            future.result()
        channel.read(4, 2)
        assert len(channel.batch_read(4, 0, max_count=4)) == 4
        found = by_directory(bookie)
    stored = [OVERHEAD + length for length in lengths]
    assert sizes([view.added for view in found[0]]) == {bucket(size): stored.count(size) for size in set(stored)}
    assert sum(view.added.total for view in found[0]) == sum(stored)
    mean = sum(stored[:4]) // 4
    assert sizes([view.answered for view in found[0]]) == {bucket(mean): 4, bucket(stored[2]): 1}
    assert sum(view.answered.total for view in found[0]) == sum(stored[:4]) + stored[2]
    assert not any(view.added.times or view.answered.times for view in found[1])


def test_a_wait_for_room_is_of_the_add(tmp_path: Path) -> None:
    """The time that an add waits for space in the write cache counts for the add, even if it is refused afterwards."""
    with (
        local_bookie(tmp_path, write_cache_bytes=2 * MIB, throttle_ms_max=THROTTLE_MS) as bookie,
        ChannelV3.connect(*bookie.address) as channel,
    ):
        channel.add(1, 0, b"x", digest=DIGEST, lac=-1, length=1)
        with pytest.raises(BookKeeperError):
            channel.add(1, 1, bytes(3 * MIB), digest=DIGEST, lac=-1, length=1)
        wanted = {"add": (1, 1), "blocked": (1, 0), "read": (0, 0), "last": (0, 0)}
        (found,) = by_directory(bookie)
    assert times(found) == wanted
    for op in ("add", "blocked"):
        assert sum(view.times[op][0].total for view in found) >= THROTTLE_MS * 1_000_000
    assert sum(view.added.times for view in found) == 1
