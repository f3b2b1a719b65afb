"""Check a history for violations of the bookie's invariants. The checker knows nothing of the code that it checks.

It makes one pass over the events in the order of the clock, with constant work for each entry. A request without an
answer may or may not have been executed. The order of two concurrent requests is left open, so a violation is never a
matter of luck:

    B1   an acknowledged entry is not read back with its payload: the read failed, a verification did not find it, or
         the bookie does not start any more
    B2   after the first failure a later request was acknowledged, or the process did not end with an error in 5 s
    B7   an entry or ledger was denied that had been acknowledged before
    B8   an add was accepted after a fence that had been answered before
    B9   a fence's answer, or a read after it, lacks an acknowledged entry that is not of a recovery add
    B10  a ledger's last entry, or the LAC that this entry was acknowledged with, went back
    B11  an add was accepted with another master key than the ledger's first
    B21  bytes were served that no client had sent under that ledger and entry
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.history.events import Event

__all__ = ["judge", "Violation"]

OK, NO_LEDGER, NO_ENTRY = 0, 1, 2
END_NS = 5_000_000_000
NEVER = 1 << 63


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation: the invariant, what happened, and when."""

    invariant: str
    what: str
    at: int


@dataclass(slots=True)
class Entry:
    """What is known about one entry id: what was sent, when it was acknowledged, when it was last read back."""

    sent: set[str] = field(default_factory=set)
    stored: str = ""
    acked_at: int = NEVER
    read_at: int = -1
    by_recovery: bool = True
    denied_after_fence: int = -1


@dataclass(slots=True)
class Ledger:
    """What is known about one ledger."""

    entries: dict[int, Entry] = field(default_factory=dict)
    key: str = ""
    last_acked: int = -1
    lac_acked: int = -1
    fenced_at: int = NEVER
    fence_showed: int | None = None

    def entry(self, number: int) -> Entry:
        found = self.entries.get(number)
        if found is None:
            found = self.entries[number] = Entry()
        return found


@dataclass(slots=True)
class Invocation:
    """A request in flight: its event, and what was known about its ledger when it was sent."""

    event: Event
    last: int
    lac: int


def judge(events: Iterable[Event]) -> list[Violation]:
    """Return every violation in the history, in the order of the clock."""
    judgement = _Judgement()
    for event in sorted(events, key=lambda event: event.at):
        judgement.see(event)
    judgement.end()
    return judgement.found


class _Judgement:
    def __init__(self) -> None:
        self.found: list[Violation] = []
        self._ledgers: dict[int, Ledger] = {}
        self._invocations: dict[int, Invocation] = {}
        self._fault_at = NEVER
        self._now = 0
        self._verified_from = NEVER
        self._returns: dict[str, Callable[[Ledger, Invocation, Event], None]] = {
            "add": self._added,
            "recovery_add": self._added,
            "fence": self._fenced,
            "read": self._read,
            "batch_read": self._read,
            "last": self._last,
        }

    def see(self, event: Event) -> None:
        self._now = event.at
        if event.kind == "nemesis":
            self._nemesis(event)
            return
        ledger = self._ledgers.setdefault(event.ledger, Ledger())
        if event.kind == "invoke":
            self._invocations[event.id] = Invocation(event, ledger.last_acked, ledger.lac_acked)
            if event.op.endswith("add"):
                for number, body in enumerate(event.bodies, event.entry):
                    ledger.entry(number).sent.add(body)
            return
        invocation = self._invocations[event.id]
        if event.code == OK and event.op not in ("read", "batch_read", "last") and invocation.event.at > self._fault_at:
            self._find("B2", event, f"{event.op} was acknowledged that was requested after the failure")
        self._returns[event.op](ledger, invocation, event)

    def end(self) -> None:
        if self._fault_at != NEVER and self._now - self._fault_at > END_NS:
            self._say("B2", "the process did not end within 5 s of the failure")

    def _say(self, invariant: str, what: str) -> None:
        self.found.append(Violation(invariant, what, self._now))

    def _find(self, invariant: str, event: Event, what: str) -> None:
        self._say(invariant, f"ledger {event.ledger}, entry {event.entry}: {what} ({event.client}, request {event.id})")

    def _nemesis(self, event: Event) -> None:
        if event.op == "fault":
            self._fault_at = min(self._fault_at, event.at)
        elif event.op == "exit" and self._fault_at != NEVER:
            if event.code == 0 or event.at - self._fault_at > END_NS:
                took = (event.at - self._fault_at) / 1e9
                self._say("B2", f"the process ended {took:.1f} s after the failure with exit code {event.code}")
            self._fault_at = NEVER
        elif event.op in ("kill", "start"):
            self.end()
            self._fault_at = NEVER
        elif event.op == "refused":
            self._say("B1", "the bookie does not start, with all that was acknowledged")
        elif event.op == "verify":
            self._verified_from = event.at
        elif event.op == "verified":
            self._all_read_since(self._verified_from)

    def _all_read_since(self, begun: int) -> None:
        """Check that everything acknowledged before a verification began was read back by it."""
        for number, ledger in self._ledgers.items():
            for entry, known in ledger.entries.items():
                if known.acked_at < begun and known.read_at < begun:
                    self._say("B1", f"ledger {number}, entry {entry}: acknowledged, and not read back")

    # The methods below judge one kind of answer each.

    def _added(self, ledger: Ledger, invocation: Invocation, event: Event) -> None:
        if event.code != OK:
            return
        recovery = event.op == "recovery_add"
        last = event.entry + len(event.bodies) - 1
        if not recovery and invocation.event.at > ledger.fenced_at:
            self._find("B8", event, "an add was acknowledged that was requested after the fence was answered")
        elif not recovery and ledger.fence_showed is not None and last > ledger.fence_showed:
            self._find("B9", event, f"acknowledged, but the fence's answer had shown {ledger.fence_showed} as the last")
        if ledger.key and invocation.event.key != ledger.key:
            self._find("B11", event, "an add was acknowledged with another master key")
        ledger.key = ledger.key or invocation.event.key
        if last > ledger.last_acked:
            ledger.last_acked, ledger.lac_acked = last, invocation.event.lac
        elif last == ledger.last_acked:
            ledger.lac_acked = max(ledger.lac_acked, invocation.event.lac)
        for number, body in enumerate(event.bodies, event.entry):
            known = ledger.entry(number)
            known.stored = known.stored or body
            known.acked_at = min(known.acked_at, event.at)
            known.by_recovery = known.by_recovery and recovery
            if not recovery and known.denied_after_fence >= 0:
                self._find("B9", event, "acknowledged after a read behind the fence had denied it")

    def _fenced(self, ledger: Ledger, invocation: Invocation, event: Event) -> None:
        if event.code not in (OK, NO_ENTRY):
            return
        ledger.fenced_at = min(ledger.fenced_at, event.at)
        shown = event.entry if event.code == OK else -1
        if ledger.fence_showed is None:
            ledger.fence_showed = shown
        if shown < invocation.last:
            self._find("B9", event, f"the fence's answer lacks entry {invocation.last}, which was acknowledged before")
        self._served(ledger, invocation, event)

    def _read(self, ledger: Ledger, invocation: Invocation, event: Event) -> None:
        if event.code == OK:
            self._served(ledger, invocation, event)
            return
        if event.code not in (NO_ENTRY, NO_LEDGER):
            return
        known = ledger.entries.get(event.entry)
        if known is None:
            return
        if known.acked_at < invocation.event.at:
            self._find("B7", event, "denied, although it was acknowledged before")
        elif invocation.event.at > ledger.fenced_at:
            known.denied_after_fence = event.at

    def _last(self, ledger: Ledger, invocation: Invocation, event: Event) -> None:
        if event.code in (NO_ENTRY, NO_LEDGER) and invocation.last >= 0:
            self._find("B7", event, f"no last entry, although {invocation.last} was acknowledged before")
        if event.code != OK:
            return
        if (event.entry, event.lac) < (invocation.last, invocation.lac):
            shown = f"last entry {event.entry} with LAC {event.lac}"
            self._find(
                "B10", event, f"{shown}, although {invocation.last} with LAC {invocation.lac} was acknowledged before"
            )
        self._served(ledger, invocation, event)

    def _served(self, ledger: Ledger, invocation: Invocation, event: Event) -> None:
        """Check that served bytes were sent, and are the acknowledged ones for an acknowledged entry."""
        for number, body in enumerate(event.bodies, event.entry):
            known = ledger.entry(number)
            if body not in known.sent:
                self._say("B21", f"ledger {event.ledger}, entry {number}: served bytes that nobody had sent")
            elif known.acked_at < invocation.event.at and body != known.stored:
                self._say("B1", f"ledger {event.ledger}, entry {number}: another payload than the acknowledged one")
            else:
                known.read_at = max(known.read_at, invocation.event.at)
