"""Test reads that find no space in the read cache: they are served outside of it, within a budget."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bookie._fast.store.direct import Held
from tests.reference.storage import entry
from tests.storage.opened import KIB, MIB, Opened

ENTRIES = 60
BUDGET = 64 * KIB
SEGMENT = 64 * KIB


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Opened]:
    """Open storage with a ring of two segments, and a flushed ledger of entries of 6 KB."""
    opened = Opened(tmp_path, read_cache_bytes=2 * SEGMENT, read_segment_bytes=SEGMENT, uncached_read_bytes=BUDGET)
    for at in range(ENTRIES):
        opened.direct.add(stored(at))
    assert opened.direct.commit()
    opened.checkpoint()
    yield opened
    opened.crash()


def stored(at: int) -> bytes:
    """Return entry `at` of the ledger."""
    return entry(1, at, payload=bytes([at]) * 6000)


def held_outside(one: Opened) -> list[Held]:
    """Read until a read is refused, without releasing any, so that all segments and the budget are in use."""
    answers = []
    for at in range(0, 2 * ENTRIES, 3):
        answers.append(one.direct.read(1, at % ENTRIES))
        if answers[-1].status != "OK":
            break
    return answers


def test_beyond_the_budget_reads_are_refused_and_memory_is_not_exceeded(one: Opened) -> None:
    """B16: while readers hold the ring, reads outside of it stay within the budget. Further reads are refused, not
    answered with "no such entry", and all is well when the readers have released their responses.
    """
    answers = held_outside(one)
    stats = one.storage.stats()
    assert answers[-1].status == "TOO_MANY_REQUESTS"
    assert BUDGET // 2 < stats["uncached_read_bytes"] <= BUDGET
    assert stats["uncached_reads_refused"] == 1
    for held in answers:
        held.release()
    assert one.storage.stats()["uncached_read_bytes"] == 0
    assert one.direct.pins() == {"halves": 0, "ring": 0}
    for at in range(ENTRIES):
        held = one.direct.read(1, at)
        assert held.entries() == [stored(at)]
        held.release()


def test_what_is_held_has_the_right_bytes(one: Opened) -> None:
    """B21: wanted segments and pages outside of the ring do not change while a response points into them."""
    answers = held_outside(one)
    for number, held in enumerate(answers[:-1]):
        assert held.entries() == [stored(number * 3 % ENTRIES)]
    for held in answers:
        held.release()


def test_an_entry_above_the_budget_is_served_when_it_is_alone(one: Opened) -> None:
    """An entry that is larger than a segment, from a time when larger entries were allowed, can still be read."""
    long = entry(2, 0, payload=b"x" * (3 * SEGMENT))
    one.direct.add(long)
    assert one.direct.commit()
    one.checkpoint()
    held = one.direct.read(2, 0)
    assert held.entries() == [long]
    assert one.storage.stats()["uncached_read_bytes"] > BUDGET
    held.release()


def test_a_batch_ends_where_the_budget_does(one: Opened) -> None:
    """A batch never waits for more of the budget: it is short, and the next request continues."""
    answers = held_outside(one)
    while one.storage.stats()["uncached_read_bytes"] > BUDGET - 2 * 6100:
        answers.pop().release()
    held = one.direct.read(1, 1, count=30, size=MIB)
    assert 0 < held.count < 30
    assert held.entries() == [stored(1 + at) for at in range(held.count)]
    for other in (held, *answers):
        other.release()
