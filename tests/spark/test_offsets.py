"""The position of a stream and the limits of its batches, without Spark: ranges, limits, offsets, filters."""

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.errors import ConfigurationError
from bookie.spark.source.bounds import Bounds
from bookie.spark.source.ledgers import LedgerEnd
from bookie.spark.source.offsets import Offset, advance, behind, between
from bookie.spark.source.ranges import Range, pack

RANGES = st.lists(
    st.builds(
        lambda ledger, first, count, size: Range(ledger, first, first + count, count * size),
        st.integers(0, 9),
        st.integers(0, 1000),
        st.integers(0, 300),
        st.integers(0, 2000),
    ),
    max_size=8,
)


@given(RANGES, st.integers(1, 100_000), st.integers(1, 20))
def test_packed_ranges_are_the_ranges(ranges: list[Range], bytes_max: int, count_min: int) -> None:
    """They are in the same order, without duplicates, within the size, and in as many groups as requested if there are
    enough entries.
    """
    groups = pack(ranges, bytes_max, count_min)
    entries = [(one.ledger, entry) for one in ranges for entry in range(one.first, one.end)]
    assert [(one.ledger, entry) for group in groups for one in group for entry in range(one.first, one.end)] == entries
    assert sum(one.nbytes for group in groups for one in group) == sum(one.nbytes for one in ranges if one.count)
    for group in groups:
        assert len(group) == 1 or sum(one.nbytes for one in group) <= bytes_max
    if entries and all(one.nbytes >= one.count for one in ranges):
        assert len(groups) >= min(count_min, len(entries)) / 2


@given(st.data())
def test_a_stream_reads_each_entry_once(data: st.DataObject) -> None:
    """Ledgers grow, close and are added in any order between batches: together the batches have all entries, once."""
    order: list[int] = []
    ends: dict[int, LedgerEnd] = {}
    read: list[tuple[int, int]] = []
    offset = Offset()
    for step in range(data.draw(st.integers(1, 12))):
        new = data.draw(st.integers(0, 2))
        order += list(data.draw(st.permutations(range(step * 10, step * 10 + new))))
        for ledger in order:
            known = ends.get(ledger, LedgerEnd(ledger, 0, 0, closed=False))
            if not known.closed:
                end = known.end + data.draw(st.integers(0, 5))
                ends[ledger] = LedgerEnd(ledger, end, end * 10, data.draw(st.booleans()))
        rows, size = (data.draw(st.none() | st.integers(1, 7)), data.draw(st.none() | st.integers(1, 60)))
        after = advance(offset, order, {one: ends[one] for one in behind(order, offset.done)}, rows, size)
        after = Offset.parse(json.loads(json.dumps(after.plain())))
        batch = [(one.ledger, entry) for one in between(offset, after, {}) for entry in range(one.first, one.end)]
        assert rows is None or len(batch) <= rows
        assert size is None or len(batch) * 10 <= max(size, 10)
        waiting = any(ends[one].end > offset.next.get(one, 0) for one in behind(order, offset.done))
        assert bool(batch) == waiting
        read += batch
        offset = after
    final = advance(offset, order, {one: ends[one] for one in behind(order, offset.done)})
    read += [(one.ledger, entry) for one in between(offset, final, {}) for entry in range(one.first, one.end)]
    assert sorted(read) == [(ledger, entry) for ledger in sorted(ends) for entry in range(ends[ledger].end)]


def test_finished_ledgers_leave_the_offset() -> None:
    """It stays small: one batch later, a finished ledger is only part of `done`."""
    order = list(range(100))
    ends = {one: LedgerEnd(one, 5, 50, closed=True) for one in order}
    first = advance(Offset(), order, ends)
    assert first.done == -1
    assert len(first.next) == 100
    assert advance(first, order, ends) is first
    order, ends = [*order, 100], {**ends, 100: LedgerEnd(100, 1, 10, closed=False)}
    assert advance(first, order, ends) == Offset(99, {100: 1})


def test_an_offset_of_something_else_is_refused() -> None:
    """The checkpoint of another source is refused."""
    with pytest.raises(ConfigurationError, match="use another checkpointLocation"):
        Offset.parse({"topic": 5})


class Filter:
    """A filter like Spark's, which are dataclasses named for their comparison."""

    def __init__(self, column: str, value: object) -> None:
        self.attribute = (column,)
        self.value = value


KINDS = {
    name: type(name, (Filter,), {})
    for name in ("EqualTo", "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual", "In", "StringContains")
}
CHECKS: dict[str, Callable[[int, Any], bool]] = {
    "EqualTo": lambda a, b: a == b,
    "GreaterThan": lambda a, b: a > b,
    "GreaterThanOrEqual": lambda a, b: a >= b,
    "LessThan": lambda a, b: a < b,
    "LessThanOrEqual": lambda a, b: a <= b,
    "In": lambda a, b: a in b,
}
FILTERS = st.lists(
    st.tuples(
        st.sampled_from(["ledger_id", "entry_id", "entry_size"]),
        st.one_of(
            st.tuples(st.sampled_from([kind for kind in CHECKS if kind != "In"]), st.integers(-2, 12)),
            st.tuples(st.just("In"), st.lists(st.integers(-2, 12), max_size=3).map(tuple)),
        ),
    ),
    max_size=4,
)


@given(FILTERS, RANGES)
def test_filters_are_applied_exactly_or_given_back(
    filters: list[tuple[str, tuple[str, int]]], ranges: list[Range]
) -> None:
    """Accepted filters leave exactly the ids that they would leave in Spark."""
    made = [KINDS[kind](column, value) for column, (kind, value) in filters]
    bounds, left = Bounds().with_filters(made)
    taken = [one for one in made if one not in left]
    assert all(one.attribute != ("entry_size",) for one in taken)
    for one in ranges:
        cut = bounds.of(one)
        wanted = [
            entry
            for entry in range(one.first, one.end)
            if all(
                CHECKS[type(f).__name__](one.ledger if f.attribute == ("ledger_id",) else entry, f.value) for f in taken
            )
        ]
        assert list(range(cut.first, cut.end)) == wanted


def test_ranges_split_evenly() -> None:
    """The pieces of a ledger are consecutive and differ by at most one entry."""
    (pieces,) = zip(*pack([Range(1, 10, 1010, 1_000_000)], 1_000_000, 7), strict=True)
    assert {piece.count for piece in pieces} <= {142, 143}
    assert [len(pack([Range(1, 0, 53, 2080)], 1_000_000, parts)) for parts in (52, 53, 54)] == [52, 53, 53]
    assert all(a.end == b.first for a, b in pairwise(pieces))
