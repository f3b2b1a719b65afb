"""Test the window of an add stream: responses in any order, refusals, stray responses, and the latency histogram."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.client.add_window import AddWindow, percentile_ns


def acknowledge(window: AddWindow, *answers: tuple[int, int]) -> None:
    """Pass responses to the window, given as (entry, code)."""
    entries, codes = zip(*answers, strict=True)
    window.acknowledge(np.array(entries, dtype=np.int64), np.array(codes, dtype=np.int32))


@given(st.integers(0, 2**40), st.integers(1, 40), st.integers(0, 2**32))
def test_any_order(first: int, capacity: int, seed: int) -> None:
    """The base is the lowest unanswered id in whatever order responses arrive, even after many wraps of the window."""
    window = AddWindow(1, 7, first, capacity)
    chance = random.Random(seed)
    unanswered: list[int] = []
    end = first
    while end < first + 200:
        count = chance.randint(0, window.room)
        window.sent(count)
        unanswered += range(end, end + count)
        end += count
        chance.shuffle(unanswered)
        now = [unanswered.pop() for _ in range(chance.randint(0, len(unanswered)))]
        window.acknowledge(np.array(now, dtype=np.int64), np.zeros(len(now), dtype=np.int32))
        assert (window.base, window.end) == (min(unanswered, default=end), end)
        assert window.confirmed == window.base
        assert window.room == capacity - (window.end - window.base)
    assert window.latency_counts.sum() == end - first - len(unanswered)


def test_answers_to_what_is_not_in_flight_are_ignored() -> None:
    """Responses to entries that were not sent, and second ones, change nothing, not even at the same place."""
    window = AddWindow(1, 7, 10, 8)
    window.sent(4)
    acknowledge(window, (9, 0), (14, 101), (18, 101))
    assert (window.base, window.end, window.error_entry) == (10, 14, -1)
    acknowledge(window, (11, 0), (11, 101))
    acknowledge(window, (11, 101))
    assert (window.base, window.end, window.error_entry) == (10, 14, -1)
    assert window.latency_counts.sum() == 1


def test_refusal_bounds_what_is_confirmed() -> None:
    """The lowest refused id is reported, in whatever order refusals arrive, and is never confirmed."""
    window = AddWindow(1, 7, 0, 8)
    window.sent(6)
    acknowledge(window, (5, 104), (0, 0), (1, 0))
    assert (window.confirmed, window.error_entry, window.error_code) == (2, 5, 104)
    acknowledge(window, (3, 105), (2, 0), (4, 0))
    assert (window.base, window.confirmed, window.error_entry, window.error_code) == (6, 3, 3, 105)


def test_window_is_bounded() -> None:
    """Sending more entries than there are free places is refused."""
    window = AddWindow(1, 7, 0, 4)
    window.sent(3)
    with pytest.raises(ValueError, match="2 entries do not fit into the 1 free places"):
        window.sent(2)


@pytest.mark.parametrize(("first", "capacity", "text"), [(-1, 1, "first entry is -1"), (0, 0, "outstanding is 0")])
def test_bad_window(first: int, capacity: int, text: str) -> None:
    """The error for an argument outside its range names the argument."""
    with pytest.raises(ValueError, match=text):
        AddWindow(1, 7, first, capacity)


@given(st.lists(st.integers(0, 2**60), min_size=1), st.floats(0, 1))
def test_percentiles(latencies: list[int], fraction: float) -> None:
    """The answer is an upper bound of the exact percentile, and at most 1/32 too high."""
    counts = np.zeros(len(AddWindow(1, 0, 0, 1).latency_counts), dtype=np.int64)
    for ns in latencies:
        shift = max(ns.bit_length() - 6, 0)
        counts[shift * 32 + (ns >> shift)] += 1
    exact = sorted(latencies)[max(int(np.ceil(fraction * len(latencies))), 1) - 1]
    bound = percentile_ns(counts, fraction)
    assert exact < bound <= exact + exact // 32 + 1


def test_percentile_of_nothing() -> None:
    """The percentile of no events is 0."""
    assert percentile_ns(np.zeros(64, dtype=np.int64), 0.99) == 0
