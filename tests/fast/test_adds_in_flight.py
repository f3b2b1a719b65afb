"""Test the unanswered adds of a connection against a dictionary: each response goes once to the sender of its add."""

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.client import framing_v2
from bookie._fast.client.adds_in_flight import AddsInFlight

ADD_V2, ADD_V3, READ = 1, 2, 9


def answers(named: list[tuple[int, int, int, int]], code: int = 0) -> Any:
    """Build a table of responses from (op, ledger, entry, transaction)."""
    rows = np.zeros(len(named), dtype=framing_v2.RESPONSE)
    for row, (op, ledger, entry, transaction) in zip(rows, named, strict=True):
        row["op"], row["ledger"], row["entry"], row["request_id"], row["code"] = op, ledger, entry, transaction, code
    return rows


def ids(*entries: int) -> Any:
    """Return entry ids as an array."""
    return np.array(entries, dtype=np.int64)


def taken(adds: AddsInFlight, rows: Any) -> tuple[int, list[tuple[int, int, int]]]:
    """Return the number of responses that are left, and (sender, entry, code) of those that were taken."""
    left, senders, entries, codes = adds.take(rows, len(rows))
    return left, list(zip(senders.tolist(), entries.tolist(), codes.tolist(), strict=True))


STEP: st.SearchStrategy[tuple[str, int, list[int]]] = st.one_of(
    st.tuples(st.just("send"), st.integers(1, 4), st.lists(st.integers(0, 300), min_size=1, max_size=40, unique=True)),
    st.tuples(st.just("answer"), st.integers(1, 4), st.lists(st.integers(0, 300), max_size=60)),
    st.tuples(st.just("leave"), st.integers(1, 4), st.just([])),
)


@given(st.lists(STEP, max_size=40), st.booleans())
def test_like_a_dictionary(steps: list[tuple[str, int, list[int]]], by_transaction: bool) -> None:
    """BR11: sends, responses (some twice, some without a request) and leaving senders in any order agree with the
    model. Sender n writes ledger n mod 2.
    """
    adds = AddsInFlight(by_transaction=by_transaction)
    model: dict[tuple[int, int], tuple[int, int]] = {}
    transactions: dict[tuple[int, int], int] = defaultdict(int)
    used = 1 << 40
    for step, sender, entries in steps:
        ledger = sender % 2
        if step == "send":
            new = [entry for entry in entries if (ledger, entry) not in model]
            assert adds.knows(ledger, ids(*new)) is False
            adds.sent(sender, ledger, ids(*new), used, 10)
            for k, entry in enumerate(new):
                model[ledger, entry] = sender, entry
                transactions[ledger, entry] = used + k
            used += len(new)
        elif step == "leave":
            adds.leave(sender)
            for name, (owner, entry) in list(model.items()):
                if owner == sender:
                    model[name] = -1, entry
                    if by_transaction:
                        del model[name]
        else:
            op = ADD_V3 if by_transaction else ADD_V2
            rows = answers([(op, ledger, entry, transactions[ledger, entry]) for entry in entries])
            if by_transaction:
                rows["ledger"] = rows["entry"] = 0
            expected = [model.pop((ledger, entry), None) for entry in entries]
            left, found = taken(adds, rows)
            assert left == expected.count(None)
            assert found == [(*name, 0) for name in expected if name is not None and name[0] > 0]
        assert adds.count == len(model)
        for ledger, first in ((0, 0), (0, 150), (1, 290)):
            ahead = any(of == ledger and entry >= first for of, entry in model)
            assert adds.knows_from(ledger, first) is (ahead and not by_transaction)


def test_other_answers_stay_in_order() -> None:
    """Responses to other requests move to the front of the table unchanged and in order."""
    adds = AddsInFlight(by_transaction=False)
    adds.sent(3, 7, ids(5, 6, 7), 0, 10)
    rows = answers(
        [(READ, 7, 5, 0), (ADD_V2, 7, 6, 0), (ADD_V2, 8, 5, 0), (READ, 1, 1, 1), (ADD_V2, 7, 7, 0)], code=104
    )
    assert taken(adds, rows) == (3, [(3, 6, 104), (3, 7, 104)])
    assert rows[:3][["op", "ledger", "entry"]].tolist() == [(READ, 7, 5), (ADD_V2, 8, 5), (READ, 1, 1)]


def test_names_of_those_who_left() -> None:
    """In V2 the name of an add stays taken until its response arrives, which is dropped if the sender has left."""
    adds = AddsInFlight(by_transaction=False)
    adds.sent(1, 7, ids(5), 0, 10)
    adds.leave(1)
    assert adds.knows(7, ids(4, 5))
    assert adds.overdue(1000) == []
    assert taken(adds, answers([(ADD_V2, 7, 5, 0)])) == (0, [])
    assert not adds.knows(7, ids(4, 5))


def test_overdue() -> None:
    """Senders are overdue once the deadline of their add has passed."""
    adds = AddsInFlight(by_transaction=True)
    adds.sent(1, 7, ids(5), 1, 10)
    adds.sent(2, 7, ids(5), 2, 20)
    assert [adds.overdue(now) for now in (9, 10, 20)] == [[], [1], [1, 2]]


def test_many() -> None:
    """The table grows to 100,000 adds and is empty again after their responses."""
    adds = AddsInFlight(by_transaction=True)
    adds.sent(1, 7, np.arange(100_000), 1, 10)
    rows = answers([(ADD_V3, 0, 0, transaction) for transaction in range(100_000, 0, -1)])
    left, _, entries, _ = adds.take(rows, len(rows))
    assert (left, adds.count) == (0, 0)
    assert entries.tolist() == list(range(99_999, -1, -1))


def test_bad_arguments() -> None:
    """Sender 0, which marks free places, and a count above the number of rows are refused."""
    adds = AddsInFlight(by_transaction=True)
    with pytest.raises(ValueError, match="sender is 0"):
        adds.sent(0, 7, ids(1), 1, 10)
    with pytest.raises(ValueError, match="count is 2"):
        adds.take(answers([(READ, 1, 1, 1)]), 2)
