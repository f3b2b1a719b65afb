"""Test the writer's table of bytes per ledger against a dictionary."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from bookie._fast.entrylog.ledger_bytes import tally

LEDGERS = st.one_of(st.integers(0, 40), st.integers(0, 2**63 - 1), st.integers(0, 400).map(lambda i: i << 32))


@settings(deadline=None)
@given(appends=st.lists(st.tuples(LEDGERS, st.integers(1, 1 << 30)), max_size=300))
def test_like_a_dict(appends: list[tuple[int, int]]) -> None:
    """Any appends give the sum of each ledger, in ascending order of ledgers."""
    sums: Counter[int] = Counter()
    for ledger, size in appends:
        sums[ledger] += size
    assert tally(appends) == sorted(sums.items())


def test_it_grows() -> None:
    """The table grows to many more ledgers than its first capacity."""
    assert tally((ledger * 7919, 1) for ledger in range(50_000)) == [(ledger * 7919, 1) for ledger in range(50_000)]
