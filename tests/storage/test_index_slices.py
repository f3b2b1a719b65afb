"""Test runs that wait for the index after a flush of many ledgers (index.pending, store.index_slices,
store.index_turn): their entries are read, listed, replaced, deleted and replayed like all others, and marks and
collection wait for them.
"""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie._fast.base.op_stats import OpView
from bookie._fast.store.entry_places import entry_places
from bookie._fast.store.entry_ranges import entry_ranges
from bookie.storage.marks import read_mark
from tests.reference.storage import entry
from tests.storage.collecting import Collecting
from tests.storage.opened import KIB, MIB

MANY = range(200)
SLICES = 16

Open = Callable[..., Collecting]


@pytest.fixture
def collecting(tmp_path: Path) -> Iterator[Open]:
    """Return a function that opens storage in which runs wait from the second ledger of a flush on."""
    made: list[Collecting] = []

    def make(**given: object) -> Collecting:
        made.append(Collecting(tmp_path, **{"index_slice_ledgers": 2, "log_bytes_max": MIB, **given}))
        return made[-1]

    yield make
    for one in made:
        one.one.crash()


def pending(all_: Collecting) -> int:
    """Return the number of runs that the index lacks."""
    return int(all_.one.storage.stats()["index_pending_runs"])


def fill(all_: Collecting, first: int, count: int = 1, mark: bytes = b"") -> None:
    """Add entries to many ledgers, and flush them for room."""
    for ledger in MANY:
        all_.add(ledger, range(first, first + count), mark)
    all_.one.flush_for_room()


def test_a_turn_puts_everything(collecting: Open, tmp_path: Path) -> None:
    """Each flush for room leaves most of its runs pending, and the mark follows when a turn is complete."""
    all_ = collecting()
    marks = [read_mark(tmp_path / "ledgers-0/current/lastMark")]
    for number in range(SLICES + 3):
        fill(all_, number)
        assert pending(all_) > len(MANY) * min(number + 1, SLICES) // 4
        marks.append(read_mark(tmp_path / "ledgers-0/current/lastMark"))
    assert marks[1:SLICES] == marks[:1] * (SLICES - 1)
    assert len(set(marks[SLICES:])) == 4, "from then on, each flush moves it"
    all_.check()
    for _ in range(SLICES):
        all_.one.flush_for_room()
    assert pending(all_) == 0
    all_.check()


def test_a_whole_checkpoint_puts_everything(collecting: Open) -> None:
    """An explicit checkpoint leaves nothing pending, and a clean stop neither."""
    all_ = collecting()
    fill(all_, 0)
    assert pending(all_)
    all_.one.checkpoint()
    assert pending(all_) == 0
    fill(all_, 1)
    all_.stop()
    all_.open()
    all_.check()


@pytest.mark.parametrize("least", [0, len(MANY) + 1])
def test_flushes_that_put_all(collecting: Open, least: int) -> None:
    """No run waits if that is switched off, or if a flush has fewer ledgers."""
    all_ = collecting(index_slice_ledgers=least)
    fill(all_, 0)
    assert pending(all_) == 0


def test_large_flushes_put_all(collecting: Open) -> None:
    """No run waits if a flush has much of each ledger: the pages that it writes are few beside the entries."""
    all_ = collecting()
    for ledger in (1, 2, 3):
        all_.add(ledger, range(20), size=10 * KIB)
    all_.one.flush_for_room()
    assert pending(all_) == 0


def test_the_latest_copy_is_found(collecting: Open) -> None:
    """Entries that are written again while older copies wait, or are in the index, are read as they were written last,
    alone and in batches.
    """
    all_ = collecting()
    fill(all_, 0, 10, b"one")
    all_.one.checkpoint()
    for number, ids in enumerate([range(0, 10, 3), range(2, 7), range(9, 12), range(4, 5), range(20, 23)]):
        for ledger in MANY:
            all_.add(ledger, ids, b"copy %d" % number)
        all_.one.flush_for_room()
        all_.check()
    assert pending(all_)
    all_.one.checkpoint()
    all_.check()


def test_pending_entries_are_listed(collecting: Open) -> None:
    """Lists of entries and of their places contain what waits for the index."""
    all_ = collecting()
    fill(all_, 0, 3)
    all_.one.checkpoint()
    fill(all_, 5, 2)
    stores = all_.one.storage.stores
    assert stores is not None
    for ledger in MANY:
        assert entry_ranges(stores, ledger) == [(0, 2), (5, 6)]
        places = entry_places(stores, ledger)
        assert [place.entry for place in places] == [0, 1, 2, 5, 6]
        assert [place.entry for place in entry_places(stores, ledger, 4)] == [5, 6]
        assert all(place.length == len(entry(ledger, 0, payload=bytes(100))) for place in places)


def test_a_deleted_ledger_does_not_come_back(collecting: Open) -> None:
    """Nothing is put into the index, and nothing is read, of a ledger that was deleted while its runs waited."""
    all_ = collecting()
    fill(all_, 0)
    for ledger in MANY[::2]:
        all_.model.delete(ledger)
    assert all_.collector.delete_ledgers(MANY[::2]) == len(MANY) // 2
    all_.check()
    all_.one.checkpoint()
    for ledger in MANY[::2]:
        all_.add(ledger, range(1, 2))
    all_.check()
    all_.one.checkpoint()
    all_.check()
    stores = all_.one.storage.stores
    assert stores is not None
    assert entry_ranges(stores, 0) == [(1, 1)]


def test_logs_wait_for_their_runs(collecting: Open) -> None:
    """A full log to which pending runs point is not collected before these are in the index."""
    all_ = collecting(log_bytes_max=8 * KIB)
    fill(all_, 0, 2)
    assert pending(all_)
    assert all_.closed() == []
    fill(all_, 0, 2, b"again")
    all_.cycle()
    all_.check()
    all_.one.checkpoint()
    assert len(all_.closed()) > 2
    all_.cycle()
    all_.check()


def test_a_ledger_with_many_runs_does_not_wait(collecting: Open) -> None:
    """A look-up goes through all pending runs of a ledger, so one with many of them is put at once."""
    all_ = collecting()
    fill(all_, 0)
    before = pending(all_)
    sparse = MANY[-1] + 1
    all_.add(sparse, range(0, 3000, 30))
    all_.add(MANY[0], range(1, 2))
    all_.one.flush_for_room()
    assert pending(all_) <= before + 1
    all_.check()


def test_memory_is_bounded(collecting: Open) -> None:
    """Beyond their share of the write cache, runs do not wait for their turn."""
    all_ = collecting(write_cache_bytes=MIB)
    for number in range(SLICES):
        fill(all_, 3 * number, 3)
        assert all_.one.storage.stats()["index_pending_bytes"] <= MIB // 8
    all_.check()


def test_a_transaction_changes_few_pages(collecting: Open) -> None:
    """LMDB keeps each page that a transaction changes in memory, so a checkpoint with many changes takes several."""
    all_ = collecting(index_leaves=10)
    fill(all_, 0, 10)
    for number in range(1, 60):
        fill(all_, 20 * number)
    before = commits(all_)
    all_.one.checkpoint()
    assert pending(all_) == 0
    assert commits(all_) - before >= len(MANY) // (2 * 10), "each ledger has leaves of its own"
    all_.check()
    fill(all_, 2000, 3)
    all_.restart(crash=True)
    all_.check()


def commits(all_: Collecting) -> int:
    """Return the number of transactions that put runs."""
    ((_, ops),) = all_.one.storage.store_ops()
    return sum(attempts.times for attempts in cast("tuple[OpView, OpView]", ops["flush_locations_index"]))


def test_the_memory_of_a_transaction_is_in_the_budget(collecting: Open) -> None:
    """The pages of a transaction are counted for each directory."""
    few, many = (collecting(index_leaves=leaves).one.storage.memory_budget()["index"] for leaves in (10, 1010))
    assert many - few >= 1000 * 4 * KIB


def test_a_crash_loses_nothing(collecting: Open) -> None:
    """What waited is replayed from the journal."""
    all_ = collecting()
    for number in range(SLICES + 2):
        fill(all_, number)
        if number % 4 == 1:
            all_.restart(crash=True)
            all_.check()


def test_a_mark_waits_for_what_it_covers_after_a_failed_flush(
    collecting: Open, faulty: ModuleType, tmp_path: Path
) -> None:
    """The half that a failed flush left is put first, but the mark is for entries that came later."""
    all_ = collecting(files=faulty.FaultyFiles())
    faulty.plan("open", "ENOSPC", suffix="ledgers-0/current/lastId.tmp")
    with pytest.raises(OSError, match="no space left"):
        fill(all_, 0)
    last_mark = tmp_path / "ledgers-0/current/lastMark"
    before = read_mark(last_mark)
    number = 1
    while read_mark(last_mark) == before:
        fill(all_, number)
        number += 1
    all_.restart(crash=True)
    all_.check()


def test_marks_are_forgotten_after_one_that_was_not_written(
    collecting: Open, faulty: ModuleType, tmp_path: Path
) -> None:
    """If a mark cannot be written, a carry-over may write a newer one. So none that was noted before may follow."""
    all_ = collecting(files=faulty.FaultyFiles())
    last_mark = tmp_path / "ledgers-0/current/lastMark"
    faulty.plan("open", "ENOSPC", suffix="ledgers-0/current/lastMark.tmp")
    for number in range(SLICES - 1):
        fill(all_, number)
    with pytest.raises(OSError, match="no space left"):
        fill(all_, SLICES)
    before = read_mark(last_mark)
    for number in range(SLICES + 1, 2 * SLICES):
        fill(all_, number)
        assert read_mark(last_mark) == before
    fill(all_, 2 * SLICES)
    assert read_mark(last_mark) != before
    all_.restart(crash=True)
    all_.check()


def test_nothing_waits_during_a_start(collecting: Open) -> None:
    """A replay puts the runs of each half before it flushes the next one, however few pages a transaction changes."""
    all_ = collecting(index_leaves=10, write_cache_bytes=32 * MIB)
    for number in range(6):
        fill(all_, 20 * number, 10)
    all_.one.checkpoint()
    for at in range(200, 220):
        for ledger in MANY:
            all_.add(ledger, range(at, at + 1), size=2 * KIB)
    halves = 20 * len(MANY) * 2 * KIB // MIB
    all_.settings["write_cache_bytes"] = 2 * MIB
    all_.restart(crash=True)
    assert commits(all_) > halves * len(MANY) // (2 * 10)
    all_.check()


LEDGERS = st.integers(0, 11)
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), LEDGERS, st.integers(0, 12), st.integers(1, 4)),
        st.tuples(st.just("fill"), st.integers(0, 12)),
        st.tuples(st.sampled_from(["room", "room", "room", "whole", "collect", "crash", "check"])),
        st.tuples(st.just("delete"), LEDGERS),
    ),
    max_size=40,
)


@settings(max_examples=40, deadline=None)
@given(ACTIONS, st.sampled_from([1, 8192]))
def test_any_sequence(actions: list[tuple[object, ...]], leaves: int) -> None:
    """Whatever is added, flushed for room or as a whole, collected, deleted and replayed: it reads like the model."""
    with tempfile.TemporaryDirectory() as root:
        all_ = Collecting(Path(root), index_slice_ledgers=1, index_leaves=leaves)
        for number, (action, *given_) in enumerate(actions):
            mark = b"%d" % number
            match action, given_:
                case "add", [int(ledger), int(first), int(count)]:
                    all_.add(ledger, range(first, first + count), mark)
                case "fill", [int(first)]:
                    for ledger in range(12):
                        all_.add(ledger, range(first, first + 1 + ledger % 2), mark)
                    all_.one.flush_for_room()
                case "delete", [int(ledger)]:
                    all_.model.delete(ledger)
                    all_.collector.delete_ledgers([ledger])
                case "room", _:
                    all_.one.flush_for_room()
                case "whole", _:
                    all_.one.checkpoint()
                case "collect", _:
                    all_.cycle()
                case "crash", _:
                    all_.one.checkpoint()  # else a deleted ledger would be replayed
                    fill_some(all_, mark)
                    all_.restart(crash=True)
                case _:
                    all_.check()
        all_.check()
        all_.stop()


def fill_some(all_: Collecting, mark: bytes) -> None:
    """Leave something pending, of all ledgers."""
    for ledger in range(12):
        all_.add(ledger, range(1), mark)
    all_.one.flush_for_room()
