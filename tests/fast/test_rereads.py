"""Test counts of entries that are read from disk again (cache.rereads): exact with enough space, never too high."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie._fast.cache.rereads import RereadsTable

SPANS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 600), st.integers(0, 300)), max_size=40)


def counted(table: RereadsTable, spans: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Return, for each span (ledger, first, number of further entries), the count of the table and the right one."""
    known: set[tuple[int, int]] = set()
    pairs = []
    for ledger, first, more in spans:
        span = {(ledger, entry) for entry in range(first, first + more + 1)}
        pairs.append((table.note(ledger, first, first + more), len(span & known)))
        known |= span
    return pairs


@settings(deadline=None)
@given(spans=SPANS)
def test_exact_while_there_is_room(spans: list[tuple[int, int, int]]) -> None:
    """Counts are exact in a table with space for all blocks."""
    assert all(reported == true for reported, true in counted(RereadsTable(1 << 20), spans))


@settings(deadline=None)
@given(spans=SPANS)
def test_never_more_than_the_truth(spans: list[tuple[int, int, int]]) -> None:
    """A table of one set forgets blocks, but never counts too many."""
    assert all(reported <= true for reported, true in counted(RereadsTable(64), spans))


def test_the_block_read_longest_ago_gives_way() -> None:
    """A set holds four blocks, and replaces the one that was used longest ago."""
    table = RereadsTable(64)
    for block in range(4):
        assert table.note(1, block * 64, block * 64 + 63) == 0
    assert table.note(1, 0, 63) == 64, "the oldest is the newest now"
    assert table.note(1, 256, 256) == 0
    assert table.note(1, 0, 63) == 64
    assert table.note(1, 64, 127) == 0, "given up for entry 256"


def test_no_memory_remembers_nothing() -> None:
    """A table smaller than one set always answers 0."""
    table = RereadsTable(63)
    assert [table.note(1, 0, 100) for _ in range(3)] == [0, 0, 0]


@pytest.mark.parametrize(("load", "share"), [(4, 0.95), (2, 0.8)])
def test_most_of_what_fits_is_remembered(load: int, share: float) -> None:
    """With a quarter or half as many blocks as fit, over many ledgers, few blocks are lost in crowded sets."""
    table = RereadsTable(1 << 16)
    blocks = [(ledger, at * 64) for ledger in range(64) for at in range(64 // load)]
    for ledger, first in blocks:
        table.note(ledger * 1_000_003, first, first + 63)
    again = sum(table.note(ledger * 1_000_003, first, first + 63) for ledger, first in blocks)
    assert again > share * 64 * len(blocks)
