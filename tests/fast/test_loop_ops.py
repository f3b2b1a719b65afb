"""Test times of requests on an I/O loop (server.loop_ops): each request is counted once, by its kind and result."""

from pathlib import Path

import pytest

from bookie.client import ChannelV3, Digest
from bookie.client.wire.extensions import Extensions
from bookie.errors import BookKeeperError, LedgerFenced, NoSuchEntry
from tests.hostile.local import LocalBookie, local_bookie

ADDS = 20
FENCE = 1


def counted(bookie: LocalBookie) -> dict[str, tuple[int, int]]:
    """Return the numbers of failed and successful requests, summed over all loops, by kind of request that occurred."""
    found: dict[str, list[int]] = {}
    for named, adds in bookie.port.ops():
        for name, views in named.items():
            total = found.setdefault(name, [0, 0])
            total[0] += views[0].times
            total[1] += views[1].times
        found["add"][1] += sum(view.times for view in adds)
    assert found.pop("channel_write")[1] > 0
    return {name: (bad, good) for name, (bad, good) in found.items() if bad or good}


WANTED = {
    "add": (1, ADDS), "read": (1, 1), "read_fence": (0, 1), "read_long_poll": (0, 1), "write_lac": (0, 1),
    "read_lac": (1, 1), "force": (0, 1), "bookie_info": (0, 1), "list_entries": (0, 1), "write_close": (0, 1),
    "other": (0, 1),  # the batch read
    "fence_wait": (0, 1), "poll_pre_wait": (0, 1), "poll_read": (0, 1),
}  # fmt: skip


def test_each_request_is_counted_once(tmp_path: Path) -> None:
    """One request of each kind, and refused ones, are counted once."""
    digest = Digest.of(password=b"")
    with local_bookie(tmp_path) as bookie, ChannelV3.connect(*bookie.address) as channel:
        channel.extensions = Extensions(["batchRead", "writeClose"])
        for entry in range(ADDS):
            channel.add(7, entry, b"x", digest=digest, lac=entry - 1, length=entry + 1)
        assert len(channel.batch_read(7, 0, max_count=ADDS)) == ADDS
        channel.read(7, 3)
        with pytest.raises(NoSuchEntry):
            channel.read(7, ADDS)
        channel.write_lac(7, 5, digest=digest)
        channel.read_lac(7)
        with pytest.raises(BookKeeperError):
            channel.read_lac(8)
        channel.force(7)
        channel.write_close(7, digest.master_key)
        channel.wait_for_lac(7, 3, 1000)
        channel.bookie_info()
        channel.list_entries(7)
        channel.read_async(7, 0, flags=FENCE, master_key=digest.master_key).result()
        with pytest.raises(LedgerFenced):
            channel.add(7, ADDS, b"x", digest=digest, lac=0, length=1)
        assert counted(bookie) == WANTED


def test_what_takes_long_is_noted_as_long(tmp_path: Path) -> None:
    """A long poll without an answer is recorded with its whole timeout, and reads from memory without it."""
    digest = Digest.of(password=b"")
    with local_bookie(tmp_path) as bookie, ChannelV3.connect(*bookie.address) as channel:
        channel.add(7, 0, b"x", digest=digest, lac=-1, length=1)
        channel.wait_for_lac(7, 0, 60)
        channel.read(7, 0)
        polls, waits, reads = (
            sum(named[what][good].total for named, _ in bookie.port.ops())
            for what, good in (("read_long_poll", 1), ("poll_wait", 0), ("poll_read", 1))
        )
        adds = [view for _, of_journals in bookie.port.ops() for view in of_journals]
    assert polls >= waits >= 60_000_000
    assert reads > 0
    assert [view.times for view in adds if view.times] == [1]
    assert sum(view.total for view in adds) > 0


def test_what_waits_is_noted_apart(tmp_path: Path) -> None:
    """The wait of a disk read for a thread and the wait of a long poll are recorded apart from the reads."""
    digest = Digest.of(password=b"")
    with local_bookie(tmp_path) as bookie, ChannelV3.connect(*bookie.address) as channel:
        channel.add(7, 0, b"x", digest=digest, lac=-1, length=1)
        assert bookie.storage.checkpoint()
        channel.read(7, 0)
        polled = channel.wait_for_lac_async(7, 0, 60_000)
        bookie.until("long_polls_waiting", lambda waiting: waiting == 1)
        channel.add(7, 1, b"x", digest=digest, lac=0, length=2)
        channel.write_lac(7, 1, digest=digest)
        polled.result()
        found = counted(bookie)
    assert {what: found.get(what) for what in ("read_queued", "poll_pre_wait", "poll_wait", "poll_read")} == {
        "read_queued": (0, 1), "poll_pre_wait": (0, 1), "poll_wait": (0, 1), "poll_read": (0, 1),
    }  # fmt: skip
