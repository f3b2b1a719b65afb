"""Latencies by powers of two (latency): counted once each, in the bucket that their microseconds say."""

from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.latency import tally

BUCKETS = 24


def bucket(ns: int) -> int:
    """The first power of two microseconds that is longer; the last bucket has no end."""
    return min((ns // 1000).bit_length(), BUCKETS - 1)


@given(latencies=st.lists(st.one_of(st.integers(0, 10_000), st.integers(0, 1 << 40)), max_size=50))
def test_each_is_in_its_bucket(latencies: list[int]) -> None:
    """Any latencies: count, sum, and the row."""
    seen = tally(latencies)
    assert (seen.times, seen.sum_ns) == (len(latencies), sum(latencies))
    assert seen.buckets == tuple(sum(bucket(ns) == at for ns in latencies) for at in range(BUCKETS))


def test_the_edges() -> None:
    """Bucket i ends below 2^i microseconds."""
    for at in range(1, BUCKETS - 1):
        assert tally([(1000 << at) - 1]).buckets[at] == 1
        assert tally([1000 << at]).buckets[at + 1] == 1
