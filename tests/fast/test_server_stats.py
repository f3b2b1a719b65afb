"""Test the histograms of batch reads (server.stats): buckets of BP-62, where an edge belongs to the bucket below it."""

from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.server.stats import merged, tally

MS = 1_000_000
MOST = 1 << 40


def test_edges_belong_to_the_bucket_below() -> None:
    """5 ms counts as "at most 5 ms" and a nanosecond more does not, and likewise for sizes."""
    answers = [(5 * MS, 128), (5 * MS + 1, 129), (3000 * MS, 1 << 20), (3000 * MS + 1, (1 << 20) + 1)]
    for success in (False, True):
        view = tally([(success, ns, size) for ns, size in answers])[success]
        assert view.request_ms.edges == (5, 10, 20, 50, 100, 200, 500, 1000, 3000)
        assert view.request_ms.counts == (1, 1, 0, 0, 0, 0, 0, 0, 1, 1)
        assert view.response_bytes.edges == (128, 512, 1024, 2048, 4096, 16384, 131072, 1048576)
        assert view.response_bytes.counts == (1, 1, 0, 0, 0, 0, 0, 1, 1)


def test_outcomes_are_apart() -> None:
    """A failure counts nowhere among the successes, and the other way round."""
    failed, well = tally([(False, MS, 40), (True, 2 * MS, 50), (True, 3 * MS, 60)])
    assert (sum(failed.request_ms.counts), failed.request_ms.sum, failed.response_bytes.sum) == (1, 1, 40)
    assert (sum(well.request_ms.counts), well.request_ms.sum, well.response_bytes.sum) == (2, 5, 110)


@given(st.lists(st.lists(st.tuples(st.integers(0, MOST), st.integers(0, MOST)), max_size=8), min_size=1, max_size=4))
def test_merged_is_counted_together(loops: list[list[tuple[int, int]]]) -> None:
    """Merged counters of several loops equal those of one loop."""
    together = tally([(True, *answer) for answers in loops for answer in answers])[1]
    view = merged(tally((True, *answer) for answer in answers)[1] for answers in loops)
    assert view.request_ms.counts == together.request_ms.counts
    assert view.response_bytes == together.response_bytes
    assert abs(view.request_ms.sum - together.request_ms.sum) <= 1e-6 * together.request_ms.sum
