"""The checker of histories finds each planted violation under its own invariant, and accepts correct histories."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.history.checker import judge
from tests.history.events import Event, History, fingerprint

S = 1_000_000_000
OK, NO_LEDGER, NO_ENTRY, EIO, FENCED = 0, 1, 2, 101, 104


class Script:
    """A history written by hand: a clock that ticks with each event, one client, ledger 7."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.now = 0
        self._ids = 0

    def invoke(self, op: str, entry: int = -1, *bodies: str, lac: int = -1, key: str = "key") -> int:
        self._ids += 1
        self._add("invoke", op, entry, bodies, lac=lac, key=key, number=self._ids)
        return self._ids

    def answer(self, number: int, op: str, entry: int, code: int, *bodies: str, lac: int = -1) -> "Script":
        self._add("return", op, entry, bodies, lac=lac, code=code, number=number)
        return self

    def ask(self, op: str, entry: int, code: int, *bodies: str, lac: int = -1, key: str = "key") -> "Script":
        """Record a request and its answer; an add sends the bodies, a read is answered with them."""
        sent = bodies if op.endswith("add") else ()
        return self.answer(self.invoke(op, entry, *sent, lac=lac, key=key), op, entry, code, *bodies, lac=lac)

    def nemesis(self, op: str, code: int = 0, after: int = 1) -> "Script":
        self.now += after
        self.events.append(Event(at=self.now, kind="nemesis", op=op, code=code))
        return self

    def found(self) -> set[str]:
        return {violation.invariant for violation in judge(self.events)}

    def _add(
        self,
        kind: str,
        op: str,
        entry: int,
        bodies: tuple[str, ...],
        *,
        lac: int,
        number: int,
        code: int = 0,
        key: str = "",
    ) -> None:
        self.now += 1
        self.events.append(
            Event(
                at=self.now,
                kind=kind,
                op=op,
                id=number,
                client="c",
                ledger=7,
                entry=entry,
                bodies=bodies,
                lac=lac,
                key=key,
                code=code,
            )
        )


def stored() -> Script:
    """Return a history with three acknowledged entries."""
    return Script().ask("add", 0, OK, "a", "b", "c", lac=1)


def lost() -> Script:
    """Return a history whose verification does not find one of them."""
    return stored().nemesis("verify").ask("batch_read", 0, OK, "a", "b").nemesis("verified")


def failed() -> Script:
    """Return a history whose verification gets an I/O error for one of them."""
    history = stored().nemesis("verify").ask("batch_read", 0, OK, "a", "b").ask("read", 2, EIO)
    return history.nemesis("verified")


def replaced() -> Script:
    """Return a history in which another payload is read than the acknowledged one, though it had been sent, too."""
    history = stored()
    history.invoke("recovery_add", 1, "other")
    return history.ask("read", 1, OK, "other")


def fenced() -> Script:
    return stored().ask("fence", 2, OK, "c")


def in_flight_behind_fence(*, denied: bool, shown: int) -> Script:
    """Return a history with an add in flight while a fence is answered, then read, then acknowledged."""
    history = stored()
    add = history.invoke("add", 3, "d")
    history.ask("fence", shown, OK, "d" if shown == 3 else "c")
    if denied:
        history.ask("read", 3, NO_ENTRY)
    return history.answer(add, "add", 3, OK, "d")


BAD: dict[str, tuple[str, Callable[[], Script]]] = {
    "an acknowledged entry is not found": ("B1", lost),
    "an acknowledged entry cannot be read": ("B1", failed),
    "an acknowledged entry has another payload": ("B1", replaced),
    "the bookie does not start": ("B1", lambda: stored().nemesis("kill").nemesis("start").nemesis("refused")),
    "an add after a failed sync is acknowledged": ("B2", lambda: stored().nemesis("fault").ask("add", 3, OK, "d")),
    "a fence after a failed sync is acknowledged": ("B2", lambda: stored().nemesis("fault").ask("fence", 2, OK, "c")),
    "the process ends in order after a failed sync": ("B2", lambda: stored().nemesis("fault").nemesis("exit")),
    "the process ends too late": ("B2", lambda: stored().nemesis("fault").nemesis("exit", 5, after=6 * S)),
    "the process does not end": ("B2", lambda: stored().nemesis("fault").nemesis("verify", after=6 * S)),
    "an acknowledged entry is denied": ("B7", lambda: stored().ask("read", 1, NO_ENTRY)),
    "its ledger is denied": ("B7", lambda: stored().ask("batch_read", 0, NO_LEDGER)),
    "the last entry is denied": ("B7", lambda: stored().ask("last", -1, NO_ENTRY)),
    "an add passes a fence": ("B8", lambda: fenced().ask("add", 3, OK, "d")),
    "a fence is forgotten by a restart": (
        "B8",
        lambda: fenced().nemesis("kill").nemesis("start").ask("add", 3, OK, "d"),
    ),
    "the fence does not show what was acknowledged": ("B9", lambda: stored().ask("fence", 1, OK, "b")),
    "an add is acknowledged that the fence did not see": (
        "B9",
        lambda: in_flight_behind_fence(denied=False, shown=2),
    ),
    "an add is acknowledged that was denied behind the fence": (
        "B9",
        lambda: in_flight_behind_fence(denied=True, shown=3),
    ),
    "the last entry goes back": ("B10", lambda: stored().ask("last", 1, OK, "b", lac=1)),
    "the LAC goes back": ("B10", lambda: stored().ask("last", 2, OK, "c", lac=0)),
    "an add passes with another key": ("B11", lambda: stored().ask("add", 3, OK, "d", key="another")),
    "bytes come that nobody sent": ("B21", lambda: stored().ask("read", 1, OK, "torn")),
    "another entry's bytes come": ("B21", lambda: stored().ask("batch_read", 0, OK, "a", "c")),
}


@pytest.mark.parametrize("lie", BAD)
def test_each_planted_lie_is_found_under_its_invariant(lie: str) -> None:
    """One wrong answer in an otherwise correct history is found under its invariant."""
    invariant, tell = BAD[lie]
    assert tell().found() == {invariant}


def test_each_invariant_has_a_lie() -> None:
    """The planted violations cover every invariant that the checker's docstring lists."""
    from tests.history import checker

    reported = {line.split()[0] for line in (checker.__doc__ or "").splitlines() if line.startswith("    B")}
    assert reported == {invariant for invariant, _ in BAD.values()}


def test_an_honest_history_is_not_accused() -> None:
    """Restarts, fences, recovery adds, errors and denials that are all correct are accepted."""
    history = stored()
    history.invoke("add", 3, "d")  # it is never answered, so it may be stored or not
    history.nemesis("kill").nemesis("start").nemesis("verify")
    history.ask("batch_read", 0, OK, "a", "b", "c").ask("read", 3, NO_ENTRY).nemesis("verified")
    history.ask("fence", 2, OK, "c").ask("add", 3, FENCED, "d").ask("add", 3, 102, "d", key="another")
    history.ask("recovery_add", 3, OK, "d", lac=2).ask("read", 3, OK, "d").ask("last", 3, OK, "d", lac=2)
    assert history.found() == set()


@pytest.mark.parametrize("shown", [2, 3])
def test_an_add_that_races_with_a_fence_may_be_refused(shown: int) -> None:
    """An add that is refused after a concurrent fence violates nothing, whatever the fence returned."""
    history = stored()
    add = history.invoke("add", 3, "d")
    history.ask("fence", shown, OK, "d" if shown == 3 else "c")
    assert history.answer(add, "add", 3, FENCED, "d").found() == set()
    assert in_flight_behind_fence(denied=False, shown=3).found() == set()


def test_a_failure_that_ends_the_process_in_time_is_right() -> None:
    """Acknowledgements in flight at a failure may arrive; after the next start everything counts again."""
    history = stored()
    late = history.invoke("add", 3, "d")
    history.nemesis("fault").answer(late, "add", 3, OK, "d")
    history.nemesis("exit", 5, after=2 * S).nemesis("start", after=60 * S).ask("add", 4, OK, "e")
    assert history.found() == set()


def test_a_history_survives_its_file(tmp_path: Path) -> None:
    """What was recorded is read back, in the order of the machine's clock."""
    history = History()
    body = fingerprint(b"\0" * 15 + b"\7" + b"\1" * 16 + b"payload")
    assert body == fingerprint(b"\0" * 15 + b"\7" + b"\2" * 16 + b"payload") != fingerprint(b"\0" * 32 + b"payload")
    number = history.invoke("c", "add", 7, 0, [body], lac=-1, key="key")
    history.answer(number, "c", "add", 7, 0, OK, [body])
    history.nemesis("kill")
    history.save(tmp_path / "history.jsonl")
    assert History.load(tmp_path / "history.jsonl").events == history.events
    assert judge(history.events) == []
