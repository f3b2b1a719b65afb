"""Test observations by size (base.op_stats): each counts in its bucket, and buckets are at most an eighth wide."""

from bisect import bisect_right
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.base.op_stats import edges, tally

EDGES = edges()
VALUES = st.one_of(st.integers(-5, 100), st.integers(0, 1 << 40), st.integers(0, (1 << 63) - 1))


def test_buckets_cover_all_and_are_narrow() -> None:
    """Buckets follow each other from 0 to the last int64, and none is wider than an eighth of its lower edge."""
    assert EDGES[:10] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    for low, high in pairwise(EDGES):
        assert low < high <= max(low + 1, low + low // 8)
    assert EDGES[-1] == 1 << 63


@given(values=st.lists(VALUES, max_size=30), times=st.integers(1, 1000), shared=st.booleans())
def test_each_is_in_its_bucket(values: list[int], times: int, shared: bool) -> None:
    """Number, sum and buckets are right for any values."""
    times = 1 if shared else times
    kept = [max(value, 0) for value in values if sum(map(abs, values)) * times < 1 << 62]
    seen = tally(kept, times, shared)
    assert (seen.times, seen.total) == (len(kept) * times, sum(kept) * times)
    wanted = [0] * (len(EDGES) - 1)
    for value in kept:
        wanted[bisect_right(EDGES, value) - 1] += times
    assert np.frombuffer(seen.buckets, np.int64).tolist() == wanted


def test_below_nothing_is_nothing() -> None:
    """A negative value, as from a clock that seems to run backwards, counts as 0."""
    assert tally([-7])[:2] == (1, 0)
