"""Test the sort of located records against Python's."""

from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.index.rebuild import sort_rows

IDS = st.one_of(st.integers(0, 300), st.integers(0, 2**63 - 1), st.integers(0, 200).map(lambda i: i << 40))
ROWS = st.lists(st.tuples(IDS, IDS, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)), max_size=200)


@given(rows=ROWS)
def test_like_sorted(rows: list[tuple[int, int, int, int]]) -> None:
    """Rows are sorted by ledger, then entry, and copies of one entry keep their order."""
    assert sort_rows(rows) == sorted(rows, key=lambda row: row[:2])
