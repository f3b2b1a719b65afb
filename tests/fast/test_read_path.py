"""Test responses from memory and disk (store.read_path, store.read_pool, cache.read, store.loads, store.direct): they
have the newest copy, stay pinned, and are right.
"""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bookie._fast.base.op_stats import OpView
from bookie._fast.store.direct import Held
from tests.reference.storage import entry
from tests.storage.opened import KIB, MIB, Opened

OpenedWith = Callable[..., Opened]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[OpenedWith]:
    """Return a function that opens storage on one directory. The storage is closed after the test."""
    open_ones: list[Opened] = []

    def make(**settings: object) -> Opened:
        open_ones.append(Opened(tmp_path, **settings))  # type: ignore[arg-type]
        return open_ones[-1]

    yield make
    for one in open_ones:
        one.crash()


@contextmanager
def holding(*answers: Held) -> Iterator[None]:
    """Release the responses after the block."""
    try:
        yield
    finally:
        for held in answers:
            held.release()


def take(held: Held) -> list[bytes]:
    """Return the entries of a response, and release it."""
    assert held.status == "OK"
    found = held.entries()
    held.release()
    return found


def add(one: Opened, ledger: int, ids: range, mark: bytes = b"first", size: int = 100) -> list[bytes]:
    """Store entries with these ids, and return them."""
    entries = [entry(ledger, at, payload=mark + bytes(size)) for at in ids]
    for data in entries:
        one.direct.add(data)
    return entries


def test_a_cold_batch_ends_where_memory_is_newer(opened: OpenedWith) -> None:
    """B21: a batch that begins on disk continues in memory with entries that were written again after the flush."""
    one = opened()
    old = add(one, 1, range(10))
    one.checkpoint()
    new = add(one, 1, range(4, 6), b"second")
    assert take(one.direct.read(1, 0, count=10, size=MIB)) == old[:4] + new + old[6:]
    one.checkpoint()
    assert take(one.direct.read(1, 0, count=10, size=MIB)) == old[:4] + new + old[6:]


def test_each_layer_gives_way_to_the_newer_one(opened: OpenedWith) -> None:
    """B21: while index, read cache and write cache have different copies of an entry, the newest one is served."""
    one = opened()
    for version in (b"one", b"two", b"three"):
        stored = add(one, 7, range(3), version)
        assert take(one.direct.read(7, 0, count=3, size=MIB)) == stored
        one.checkpoint()
        assert take(one.direct.read(7, 1, count=3, size=MIB)) == stored[1:]


def test_an_entry_that_does_not_fit_ends_a_batch_past_a_busy_ring(opened: OpenedWith) -> None:
    """With every segment pinned, cold reads use pages of their own, and the size limit still applies to them."""
    one = opened(read_cache_bytes=64 * KIB, read_segment_bytes=32 * KIB, readahead_bytes=1, readahead_entries=1)
    stored = [add(one, ledger, range(4), size=10_000) for ledger in range(8)]
    one.checkpoint()
    held = [one.direct.read(ledger, 0, count=1) for ledger in range(7)]
    with holding(*held):
        assert one.direct.pins()["ring"] == 6, "three pages a segment; the seventh is on its own"
        assert take(one.direct.read(7, 0, count=4, size=15_000)) == stored[7][:1]
        assert take(one.direct.read(7, 0, count=4, size=MIB)) == stored[7]
        assert [answer.entries() for answer in held] == [entries[:1] for entries in stored[:7]]


def test_the_oldest_of_the_ring_make_room(opened: OpenedWith) -> None:
    """RC1: what was read last is in memory; what was read before the ring came round is read from disk again."""
    one = opened(read_cache_bytes=64 * KIB, read_segment_bytes=16 * KIB)
    stored = {ledger: add(one, ledger, range(10), size=1000) for ledger in range(10)}
    one.checkpoint()

    def disk_reads(ledger: int) -> int:
        before = one.storage.stats()["disk_reads"]
        assert take(one.direct.read(ledger, 0, count=10, size=MIB)) == stored[ledger]
        return int(one.storage.stats()["disk_reads"] - before)

    assert all(disk_reads(ledger) for ledger in stored)
    assert [disk_reads(ledger) for ledger in (9, 8, 7)] == [0, 0, 0]
    assert disk_reads(0)


def test_held_slices_outlive_the_ring(opened: OpenedWith) -> None:
    """B21: what a response points into does not change, however often the ring is reused meanwhile."""
    one = opened(read_cache_bytes=64 * KIB, read_segment_bytes=16 * KIB)
    stored = {ledger: add(one, ledger, range(20), size=1000) for ledger in range(10)}
    one.checkpoint()
    for ledger, entries in stored.items():
        held = one.direct.read(ledger, 0, count=5, size=MIB)
        with holding(held):
            for other, expected in stored.items():
                assert take(one.direct.read(other, 10, count=10, size=MIB)) == expected[10:]
            assert held.entries() == entries[:5]
    assert one.direct.pins() == {"halves": 0, "ring": 0}


def test_readahead_keeps_to_its_count(opened: OpenedWith) -> None:
    """A miss in a long run reads as many entries as are configured, or as many as were requested."""
    one = opened(readahead_bytes=64 * KIB, read_cache_bytes=MIB, read_segment_bytes=256 * KIB, readahead_entries=20)
    stored = add(one, 5, range(1000))
    one.checkpoint()
    assert take(one.direct.read(5, 0)) == stored[:1]
    assert 19 <= one.storage.stats()["readahead_batch_count"] <= 21
    assert take(one.direct.read(5, 500, count=300, size=MIB)) == stored[500:800]


@pytest.mark.parametrize(("limit", "most"), [(10 * 232, 10), (1 << 40, 32 * KIB // 232)])
def test_rc1_readahead_keeps_to_its_bytes(opened: OpenedWith, limit: int, most: int) -> None:
    """RC1: readahead is limited to the configured bytes, and to half a segment whatever they are."""
    one = opened(readahead_bytes=limit, readahead_entries=10_000, read_cache_bytes=MIB, read_segment_bytes=64 * KIB)
    stored = add(one, 5, range(1000), size=199)
    assert {len(data) + 4 for data in stored} == {232}
    one.checkpoint()
    assert take(one.direct.read(5, 0)) == stored[:1]
    assert most - 1 <= one.storage.stats()["readahead_batch_count"] <= most
    assert take(one.direct.read(5, most // 2)) == [stored[most // 2]]
    assert one.storage.stats()["evicted_entries"] == 0


def test_rc2_readahead_ends_with_the_file(opened: OpenedWith) -> None:
    """RC2: a reader continues from log to log, past other ledgers, and each entry is read once without errors."""
    one = opened(log_bytes_max=32 * KIB, read_threads=1)
    stored: dict[int, list[bytes]] = {5: [], 6: []}
    for first in range(0, 120, 40):
        for ledger in stored:
            stored[ledger] += add(one, ledger, range(first, first + 40), size=400)
        one.checkpoint()
    assert len(list((one.ledger_dirs[0] / "current").glob("*.log"))) > 2
    for ledger, entries in stored.items():
        for at, data in enumerate(entries):
            assert take(one.direct.read(ledger, at)) == [data]
    stats = one.storage.stats()
    assert (stats["readahead_batch_count"], stats["corrupt_records"]) == (240, 0)
    assert stats["disk_reads"] < 40


def test_what_is_not_read_in_order_is_not_read_ahead(opened: OpenedWith) -> None:
    """A random read loads only what was requested, and one that continues after it four times as much."""
    one = opened(readahead_bytes=MIB, read_cache_bytes=8 * MIB, read_segment_bytes=4 * MIB, read_threads=1)
    stored = add(one, 5, range(4000))
    one.checkpoint()

    def brought() -> int:
        return int(one.storage.stats()["readahead_batch_count"])

    for first, count in ((3000, 1), (100, 7), (2000, 1), (1500, 1), (107 + 2800, 1)):
        before = brought()
        assert take(one.direct.read(5, first, count=count, size=MIB)) == stored[first : first + count]
        assert brought() == before + count
    before = brought()
    assert take(one.direct.read(5, 107)) == stored[107:108]
    assert brought() == before + 28, "right behind the seven that were read before"
    assert take(one.direct.read(5, 135)) == stored[135:136]
    assert brought() == before + 29, "of those twenty-eight one was taken"
    for at in range(2001, 2500):
        assert take(one.direct.read(5, at)) == stored[at : at + 1]
    assert one.storage.stats()["disk_reads"] < 20


def test_a_stretch_is_one_look_up_in_the_index(opened: OpenedWith) -> None:
    """A cold reader that takes one entry after the other looks up hardly more than once for each read of the disk."""
    one = opened(readahead_bytes=MIB, read_cache_bytes=8 * MIB, read_segment_bytes=4 * MIB)
    stored = add(one, 5, range(4000))
    one.checkpoint()
    for at, data in enumerate(stored):
        assert take(one.direct.read(5, at)) == [data]
    ((_, ops),) = one.storage.store_ops()
    found = ops["lookup_entry_location"]
    assert isinstance(found, OpView)
    assert 1 <= found.times <= one.storage.stats()["disk_reads"] + 8 < 40


@pytest.mark.parametrize("start", [0, 1000])
@pytest.mark.parametrize("step", [1, 2, 3, 7])
def test_readers_by_steps_are_read_ahead(opened: OpenedWith, step: int, start: int) -> None:
    """A reader that takes every second, third or seventh entry, as one that rotates over replicas does, needs few disk
    reads, wherever it begins, and each entry is read from disk once.
    """
    one = opened(readahead_bytes=MIB, read_cache_bytes=8 * MIB, read_segment_bytes=4 * MIB)
    stored = add(one, 5, range(4000))
    one.checkpoint()
    for at in range(start, 4000, step):
        assert take(one.direct.read(5, at)) == [stored[at]]
    stats = one.storage.stats()
    assert stats["disk_reads"] <= 12
    assert stats["readahead_batch_count"] <= 4000 - start
    assert stats["rereads"] == 0


def test_readers_by_batches_in_turn_are_read_ahead(opened: OpenedWith) -> None:
    """Several readers of a ledger at once, each of which asks for one batch out of three, need few disk reads."""
    one = opened(readahead_bytes=MIB, read_cache_bytes=8 * MIB, read_segment_bytes=4 * MIB)
    stored = add(one, 5, range(8000), size=10)
    one.checkpoint()
    for at in range(0, 1800, 30):
        for position in (1000, 3001, 5002):
            first = position + at
            assert take(one.direct.read(5, first, count=10, size=MIB)) == stored[first : first + 10]
    assert one.storage.stats()["disk_reads"] <= 3 * 8


def test_random_reads_bring_nothing_else(opened: OpenedWith) -> None:
    """Of random reads in a large ledger, each brings hardly more than its own entry."""
    one = opened(readahead_bytes=MIB, read_cache_bytes=8 * MIB, read_segment_bytes=4 * MIB)
    stored = add(one, 5, range(20_000), size=10)
    one.checkpoint()
    chosen = random.Random(5).sample(range(1, 20_000), 400)
    for at in chosen:
        assert take(one.direct.read(5, at)) == [stored[at]]
    assert one.storage.stats()["readahead_batch_count"] < 1.5 * len(chosen)


@pytest.mark.parametrize(("policy", "brought"), [("forward", 2), ("always", 2000), ("off", 2)])
def test_the_policy_of_readahead(opened: OpenedWith, policy: str, brought: int) -> None:
    """Two reads far from each other bring their own entries only, or as much as may be read ahead each time."""
    one = opened(
        readahead_policy=policy, readahead_bytes=MIB, read_cache_bytes=8 * MIB, read_segment_bytes=4 * MIB,
    )  # fmt: skip
    stored = add(one, 5, range(4000), size=10)
    one.checkpoint()
    for at in (500, 2500):
        assert take(one.direct.read(5, at)) == [stored[at]]
    assert one.storage.stats()["readahead_batch_count"] == brought
    if policy == "off":
        assert take(one.direct.read(5, 0)) == [stored[0]]
        assert take(one.direct.read(5, 1)) == [stored[1]]
        assert one.storage.stats()["readahead_batch_count"] == brought + 2


@pytest.mark.parametrize(("ensemble", "quorum"), [(3, 2), (3, 1), (20, 2), (40, 1)])
def test_striped_ledgers_are_read_ahead(opened: OpenedWith, ensemble: int, quorum: int) -> None:
    """With `quorum` of `ensemble` entries on this bookie, with narrow or wide gaps, one disk read loads many entries,
    and the next ones are loaded before they are requested.
    """
    one = opened(read_threads=1, readahead_bytes=10_000, read_cache_bytes=MIB)
    mine = [at for at in range(2000) if at % ensemble < quorum][:80]
    stored = {at: data for at in mine for data in add(one, 5, range(at, at + 1), size=500)}
    add(one, 4, range(10))
    add(one, 6, range(10))
    one.checkpoint()
    for at, data in stored.items():
        assert take(one.direct.read(5, at)) == [data]
    stats = one.storage.stats()
    assert stats["readahead_batch_count"] == len(mine), "each entry once, none of other ledgers"
    assert stats["disk_reads"] <= len(mine) * 533 // 10_000 + 2
    assert one.direct.read(5, mine[-1] + 1).status == "NO_ENTRY"
    assert one.direct.read(5, mine[-2] + ensemble * 50).status == "NO_ENTRY"


def test_only_the_next_swap_waits_for_held_slices(opened: OpenedWith) -> None:
    """B21: a half is not reused while a response points into it. Its flush ends, and adds and reads go on meanwhile."""
    one = opened()
    stored = add(one, 1, range(5))
    held = one.direct.read(1, 0, count=5, size=MIB)
    one.checkpoint()
    flush = threading.Thread(target=one.checkpoint)
    with holding(held):
        add(one, 2, range(1))
        flush.start()
        one.direct.wait(1, one.direct.add(entry(1, 5, payload=b"later")), 0.01)
        assert take(one.direct.read(1, 4, count=9, size=MIB)) == [stored[4], entry(1, 5, payload=b"later")]
        assert flush.is_alive()
        assert held.entries() == stored
    flush.join()
    assert one.direct.pins()["halves"] == 0


@pytest.mark.parametrize("harm", ["missing", "cut", "other entry"])
def test_a_disk_that_lies_is_no_negative_answer(opened: OpenedWith, harm: str) -> None:
    """B7, ST3: an entry that is in the index but not in the log is an I/O error, in single reads and batches."""
    one = opened()
    add(one, 1, range(3))
    one.checkpoint()
    [log] = (one.ledger_dirs[0] / "current").glob("*.log")
    data = bytearray(log.read_bytes())
    if harm == "missing":
        log.unlink()
    elif harm == "cut":
        log.write_bytes(data[:1030])
    else:
        data[1024 + 4 + 15] ^= 1
        log.write_bytes(data)
    for count in (1, 3):
        held = one.direct.read(1, 0, count=count, size=MIB)
        assert (held.status, held.count) == ("IO_ERROR", 0)


def test_damage_behind_the_first_entry_shortens_a_batch(opened: OpenedWith) -> None:
    """B7, BR8, ST3: a batch ends before a damaged entry and is counted as short. The entry itself is an I/O error."""
    one = opened()
    stored = add(one, 1, range(3))
    one.checkpoint()
    [log] = (one.ledger_dirs[0] / "current").glob("*.log")
    data = bytearray(log.read_bytes())
    data[1024 + len(stored[0]) + 4 + 4 + 15] ^= 8
    log.write_bytes(data)
    assert take(one.direct.read(1, 0, count=1, size=MIB)) == stored[:1]
    assert one.storage.stats()["short_batches"] == 0
    assert take(one.direct.read(1, 0, count=3, size=MIB)) == stored[:1]
    assert one.storage.stats()["short_batches"] == 1
    assert one.direct.read(1, 1).status == "IO_ERROR"
    assert take(one.direct.read(1, 2)) == stored[2:]


def test_the_last_entry_after_a_restart(tmp_path: Path) -> None:
    """RC3: the index is asked once, and its time is recorded. Adds after the restart count, too."""
    one = Opened(tmp_path)
    stored = add(one, 1, range(5))
    one.stop()
    one = Opened(tmp_path)
    ((_, before),) = one.storage.store_ops()
    assert take(one.direct.read(1, -1)) == stored[4:]
    assert take(one.direct.read(1, -1)) == stored[4:]
    ((_, ops),) = one.storage.store_ops()
    (asked, told) = (view["lookup_last_entry"] for view in (before, ops))
    assert isinstance(asked, OpView)
    assert isinstance(told, OpView)
    assert (asked.times, told.times) == (0, 1)
    later = add(one, 1, range(8, 9))
    assert take(one.direct.read(1, -1)) == later
    assert one.direct.read(2, -1).status == "NO_LEDGER"
    one.direct.fence(3)
    assert one.direct.read(3, -1).status == "NO_ENTRY"
    one.stop()


def test_readers_at_once(opened: OpenedWith) -> None:
    """B21: with many threads and few segments, each read gets what was stored, and nothing stays pinned."""
    one = opened(read_cache_bytes=128 * KIB, read_segment_bytes=16 * KIB)
    stored = {ledger: add(one, ledger, range(50), b"%d" % ledger, size=700) for ledger in range(8)}
    one.checkpoint()
    wrong: list[tuple[int, int]] = []
    users = [one.user() for _ in range(4)]

    def read(at: int) -> None:
        for step in range(200):
            ledger, first = (step * 7 + at) % 8, (step * 13 + at * 11) % 45
            held = users[at].read(ledger, first, count=5, size=MIB)
            if held.status != "OK" or held.entries() != stored[ledger][first : first + held.count]:
                wrong.append((ledger, first))
            held.release()

    threads = [threading.Thread(target=read, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for user in users:
        user.close()
    assert not wrong
    assert one.direct.pins() == {"halves": 0, "ring": 0}
