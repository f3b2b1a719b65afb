"""Test the adds in flight of several streams on one connection: each response goes to its window, once."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.client import framing_v2
from bookie._fast.client.add_window import AddWindow
from bookie._fast.client.stream_adds import StreamAdds

ADD_V2, ADD_V3, READ = 1, 2, 9
CAPACITY = 50
STEP: st.SearchStrategy[tuple[str, int, list[int]]] = st.one_of(
    st.tuples(st.just("send"), st.integers(1, 4), st.lists(st.just(0), max_size=40)),
    st.tuples(st.just("answer"), st.integers(1, 4), st.lists(st.integers(0, 120), max_size=60)),
    st.tuples(st.just("leave"), st.integers(1, 4), st.just([])),
)


def answers(op: int, ledger: int, *named: tuple[int, int, int]) -> Any:
    """Build a table of responses from (entry, transaction, code)."""
    rows = np.zeros(len(named), dtype=framing_v2.RESPONSE)
    for row, (entry, transaction, code) in zip(rows, named, strict=True):
        row["op"], row["ledger"], row["entry"], row["request_id"], row["code"] = op, ledger, entry, transaction, code
    return rows


@given(st.lists(STEP, max_size=40), st.booleans())
def test_like_a_dictionary(steps: list[tuple[str, int, list[int]]], by_transaction: bool) -> None:
    """BR11: sends, responses (some twice, some without a request) and streams that end, in any order, agree with the
    model. Stream n writes ledger n.
    """
    adds = StreamAdds(by_transaction=by_transaction)
    windows = {number: AddWindow(number, number, 0, CAPACITY) for number in range(1, 5)}
    for window in windows.values():
        adds.open(window)
    flying: dict[tuple[int, int], int] = {}
    ended: set[int] = set()
    used = 1
    for step, number, numbers in steps:
        window = windows[number]
        if step == "send" and number not in ended:
            count = min(len(numbers), window.room)
            flying.update({(number, window.end + k): used + k for k in range(count)})
            adds.send(window, count, used)
            used += count
        elif step == "leave":
            adds.leave(number)
            ended.add(number)
            if by_transaction:
                flying = {name: transaction for name, transaction in flying.items() if name[0] != number}
        elif step == "answer":
            known = [flying.pop((number, entry), None) for entry in numbers]
            named = [(entry, transaction or 1 << 40, 0) for entry, transaction in zip(numbers, known, strict=True)]
            rows = answers(ADD_V3 if by_transaction else ADD_V2, number, *named)
            assert adds.acknowledge(rows, len(rows)) == known.count(None)
        assert adds.count == len(flying)
        for other in set(windows) - ended:
            left = [entry for of, entry in flying if of == other]
            assert windows[other].base == min(left, default=windows[other].end)


@pytest.mark.parametrize("by_transaction", [False, True])
def test_refusals_and_other_answers(by_transaction: bool) -> None:
    """A refusal reaches the window with its code. Responses to other requests move to the front, in order."""
    adds = StreamAdds(by_transaction=by_transaction)
    window = AddWindow(3, 7, 10, 8)
    adds.open(window)
    adds.send(window, 3, 100)
    op = ADD_V3 if by_transaction else ADD_V2
    rows = answers(op, 7, (10, 100, 0), (9, 99, 0), (12, 102, 104), (13, 103, 0), (11, 101, 0))
    rows[4]["op"] = READ
    assert adds.acknowledge(rows, 5) == 3
    assert rows[:3]["entry"].tolist() == [9, 13, 11]
    assert (window.base, window.confirmed, window.error_entry, window.error_code) == (11, 11, 12, 104)


def test_room_and_rows_are_bounded() -> None:
    """More entries than the window has room for, and more rows than the table has, are refused; nothing is recorded."""
    adds = StreamAdds(by_transaction=False)
    window = AddWindow(1, 7, 0, 4)
    with pytest.raises(ValueError, match="5 entries do not fit into the 4 free places"):
        adds.send(window, 5, 0)
    assert (adds.count, window.end) == (0, 0)
    with pytest.raises(ValueError, match="count is 2"):
        adds.acknowledge(answers(ADD_V2, 7, (0, 0, 0)), 2)
