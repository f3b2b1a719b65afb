"""Test the window of an add stream: responses in any order, refusals, foreign responses, and the latency histogram."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.client.add_window import AddWindow, percentile_ns
from bookie._fast.client.framing_v2 import RESPONSE


def answers(*rows: tuple[int, int, int], op: int = 1) -> Any:
    """Build a table of responses from (ledger, entry, code)."""
    table = np.zeros(len(rows), dtype=RESPONSE)
    for k, (ledger, entry, code) in enumerate(rows):
        table[k] = (op, code, ledger, entry, 0, 0, 0)
    return table


@given(st.integers(0, 2**40), st.integers(1, 40), st.integers(0, 2**32))
def test_any_order(first: int, capacity: int, seed: int) -> None:
    """The base is the lowest unanswered id in whatever order responses arrive, even after many wraps of the window."""
    window = AddWindow(7, first, capacity)
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
        rows = answers(*((7, entry, 0) for entry in now))
        assert window.acknowledge(rows, len(now)) == len(now)
        assert not rows["op"].any()
        assert (window.base, window.end) == (min(unanswered, default=end), end)
        assert window.confirmed == window.base
        assert window.room == capacity - (window.end - window.base)
    assert window.latency_counts.sum() == end - first - len(unanswered)


def test_foreign_answers_are_left_alone() -> None:
    """Responses for other ledgers, operations and ids that were not sent, and second ones, stay in the table."""
    window = AddWindow(7, 10, 8)
    window.sent(4)
    assert window.acknowledge(answers((8, 10, 0), (7, 9, 0), (7, 14, 0)), 3) == 0
    assert window.acknowledge(answers((7, 10, 0), op=2), 1) == 0
    assert window.acknowledge(answers((7, 11, 0), (7, 11, 0)), 2) == 1
    assert window.acknowledge(answers((7, 11, 0)), 1) == 0
    assert (window.base, window.end) == (10, 14)


def test_transactions_name_the_adds_of_v3() -> None:
    """A V3 stream matches responses by transaction id: without a sub-response they have no ledger and entry."""
    window = AddWindow(7, 10, 8, request_base=1000)
    window.sent(3)
    table = np.zeros(4, dtype=RESPONSE)
    for row, (op, code, transaction) in enumerate([(2, 502, 1011), (2, 0, 11), (1, 0, 1010), (2, 0, 1010)]):
        table[row] = (op, code, 0, 0, transaction, 0, 0)
    assert window.acknowledge(table, 4) == 2
    assert table["op"].tolist() == [0, 2, 1, 0]
    assert (window.base, window.confirmed, window.error_entry, window.error_code) == (12, 11, 11, 502)


def test_refusal_bounds_what_is_confirmed() -> None:
    """The lowest refused id is reported, in whatever order refusals arrive, and is never confirmed."""
    window = AddWindow(7, 0, 8)
    window.sent(6)
    window.acknowledge(answers((7, 5, 104), (7, 0, 0), (7, 1, 0)), 3)
    assert (window.confirmed, window.error_entry, window.error_code) == (2, 5, 104)
    window.acknowledge(answers((7, 3, 105), (7, 2, 0), (7, 4, 0)), 3)
    assert (window.base, window.confirmed, window.error_entry, window.error_code) == (6, 3, 3, 105)


def test_window_is_bounded() -> None:
    """Sending more entries than there are free places is refused."""
    window = AddWindow(7, 0, 4)
    window.sent(3)
    with pytest.raises(ValueError, match="2 entries do not fit into the 1 free places"):
        window.sent(2)


@pytest.mark.parametrize(("first", "capacity", "text"), [(-1, 1, "first entry is -1"), (0, 0, "outstanding is 0")])
def test_bad_window(first: int, capacity: int, text: str) -> None:
    """The error for an argument outside its range names the argument."""
    with pytest.raises(ValueError, match=text):
        AddWindow(7, first, capacity)


@given(st.lists(st.integers(0, 2**60), min_size=1), st.floats(0, 1))
def test_percentiles(latencies: list[int], fraction: float) -> None:
    """The answer is an upper bound of the exact percentile, and at most 1/32 too high."""
    counts = np.zeros(len(AddWindow(0, 0, 1).latency_counts), dtype=np.int64)
    for ns in latencies:
        shift = max(ns.bit_length() - 6, 0)
        counts[shift * 32 + (ns >> shift)] += 1
    exact = sorted(latencies)[max(int(np.ceil(fraction * len(latencies))), 1) - 1]
    bound = percentile_ns(counts, fraction)
    assert exact < bound <= exact + exact // 32 + 1


def test_percentile_of_nothing() -> None:
    """The percentile of no events is 0."""
    assert percentile_ns(np.zeros(64, dtype=np.int64), 0.99) == 0
