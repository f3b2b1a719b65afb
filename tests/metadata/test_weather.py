"""The judge of calls to a metadata store: it accepts what a store may answer, and names what it may not."""

import pytest

from tests.metadata.weather import Call, judge


def call(what: str, at: float, number: int = -1, expected: int = -1, version: int = -1, outcome: str = "done") -> Call:
    """Return a call on ledger 1 that took a second, or never ended if its outcome is not known."""
    ended = float("inf") if outcome == "unknown" else at + 1
    return Call("read" if what == "absent" else what, 1, at, number, expected, version, outcome, ended)


CREATED = call("create", 0, number=1, version=10)
CHANGED = call("change", 2, number=2, expected=10, version=11)


@pytest.mark.parametrize(
    "calls",
    [
        pytest.param([CREATED, CHANGED, call("read", 4, 2, version=11)], id="in order"),
        pytest.param(
            [CREATED, call("change", 2, 2, 10, outcome="unknown"), call("read", 4, 1, version=10)], id="not yet"
        ),
        pytest.param([CREATED, call("change", 2, 2, 10, outcome="unknown"), call("read", 4, 2, version=11)], id="late"),
        pytest.param([CREATED, CHANGED, call("read", 2.5, 1, version=10)], id="at the same time"),
        pytest.param([CREATED, call("delete", 2, expected=10), call("absent", 4)], id="deleted"),
        pytest.param(
            [CREATED, call("delete", 2, expected=10, outcome="unknown"), call("absent", 4)], id="perhaps deleted"
        ),
        pytest.param(
            [CREATED, call("change", 2, 2, 9, outcome="refused"), call("read", 4, 1, version=10)], id="refused"
        ),
    ],
)
def test_what_a_store_may_answer(calls: list[Call]) -> None:
    """Calls that ended one after the other, at the same time, without an answer, and refused ones."""
    assert judge(calls) == []


@pytest.mark.parametrize(
    ("calls", "what"),
    [
        ([CREATED, CHANGED, call("read", 4, 1, version=10)], "a version before 11"),
        ([CREATED, CHANGED, call("change", 2, 3, 10, 12)], "two calls replaced one version"),
        ([CREATED, CHANGED, call("delete", 2, expected=10)], "two calls replaced one version"),
        ([CREATED, call("delete", 2, expected=10), call("delete", 4, expected=10)], "two calls replaced one version"),
        ([CREATED, call("read", 2, 7, version=10)], "has two values"),
        ([call("read", 0, 7, version=10)], "nobody had written"),
        ([call("read", 0, 1, version=10), call("create", 2, 1, version=10)], "nobody had written"),
        ([CREATED, call("absent", 2)], "nobody deleted it"),
        ([CREATED, call("delete", 0.5, expected=9), call("absent", 2)], "nobody deleted it"),
        ([CREATED, call("delete", 2, expected=10), call("read", 4, 1, version=10)], "had been replaced"),
        ([CREATED, call("change", 2, 2, 10, 9)], "before the one that it replaced"),
        ([CREATED, call("read", 2, 1, version=12)], "another version than its writer"),
    ],
)
def test_what_a_store_must_not_answer(calls: list[Call], what: str) -> None:
    """Lost changes, stale reads, and what nobody had written."""
    assert any(what in text for text in judge(calls)), judge(calls)
