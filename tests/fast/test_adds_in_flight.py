"""The unanswered adds of a connection against a dictionary: each answer is taken once, by the sender that it is for."""

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
    """A table of (op, ledger, entry, transaction)."""
    rows = np.zeros(len(named), dtype=framing_v2.RESPONSE)
    for row, (op, ledger, entry, transaction) in zip(rows, named, strict=True):
        row["op"], row["ledger"], row["entry"], row["request_id"], row["code"] = op, ledger, entry, transaction, code
    return rows


def ids(*entries: int) -> Any:
    """Entry ids as an array."""
    return np.array(entries, dtype=np.int64)


def taken(adds: AddsInFlight, rows: Any) -> tuple[int, list[tuple[int, int, int]]]:
    """What is left, and (sender, entry, code) of what was taken."""
    left, senders, entries, codes = adds.take(rows, len(rows))
    return left, list(zip(senders.tolist(), entries.tolist(), codes.tolist(), strict=True))


STEP: st.SearchStrategy[tuple[str, int, list[int]]] = st.one_of(
    st.tuples(st.just("send"), st.integers(1, 4), st.lists(st.integers(0, 300), min_size=1, max_size=40, unique=True)),
    st.tuples(st.just("answer"), st.integers(1, 4), st.lists(st.integers(0, 300), max_size=60)),
    st.tuples(st.just("leave"), st.integers(1, 4), st.just([])),
)


@given(st.lists(STEP, max_size=40), st.booleans())
def test_like_a_dictionary(steps: list[tuple[str, int, list[int]]], by_transaction: bool) -> None:
    """BR11: any order of sends, answers (some twice, some to nothing) and leaves; sender n writes ledger n mod 2."""
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


def test_other_answers_stay_in_order() -> None:
    """What is no add of ours moves to the front of the table, as it was."""
    adds = AddsInFlight(by_transaction=False)
    adds.sent(3, 7, ids(5, 6, 7), 0, 10)
    rows = answers(
        [(READ, 7, 5, 0), (ADD_V2, 7, 6, 0), (ADD_V2, 8, 5, 0), (READ, 1, 1, 1), (ADD_V2, 7, 7, 0)], code=104
    )
    assert taken(adds, rows) == (3, [(3, 6, 104), (3, 7, 104)])
    assert rows[:3][["op", "ledger", "entry"]].tolist() == [(READ, 7, 5), (ADD_V2, 8, 5), (READ, 1, 1)]


def test_names_of_those_who_left() -> None:
    """In V2 a name stays known until it is answered, whoever left; the answer goes to nobody."""
    adds = AddsInFlight(by_transaction=False)
    adds.sent(1, 7, ids(5), 0, 10)
    adds.leave(1)
    assert adds.knows(7, ids(4, 5))
    assert adds.overdue(1000) == []
    assert taken(adds, answers([(ADD_V2, 7, 5, 0)])) == (0, [])
    assert not adds.knows(7, ids(4, 5))


def test_overdue() -> None:
    """Senders by the time of what they wait for."""
    adds = AddsInFlight(by_transaction=True)
    adds.sent(1, 7, ids(5), 1, 10)
    adds.sent(2, 7, ids(5), 2, 20)
    assert [adds.overdue(now) for now in (9, 10, 20)] == [[], [1], [1, 2]]


def test_many() -> None:
    """The table grows, and is empty again."""
    adds = AddsInFlight(by_transaction=True)
    adds.sent(1, 7, np.arange(100_000), 1, 10)
    rows = answers([(ADD_V3, 0, 0, transaction) for transaction in range(100_000, 0, -1)])
    left, _, entries, _ = adds.take(rows, len(rows))
    assert (left, adds.count) == (0, 0)
    assert entries.tolist() == list(range(99_999, -1, -1))


def test_bad_arguments() -> None:
    """Sender 0 is a free place; a table has no more rows than it has."""
    adds = AddsInFlight(by_transaction=True)
    with pytest.raises(ValueError, match="sender is 0"):
        adds.sent(0, 7, ids(1), 1, 10)
    with pytest.raises(ValueError, match="count is 2"):
        adds.take(answers([(READ, 1, 1, 1)]), 2)
