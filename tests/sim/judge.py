"""The judge of a simulated world: it finds violations of the ledger invariants in its history and in its final state.

It makes single passes over the history and over what bookies and store hold in the end; it knows nothing of the
client.

    L1   an entry above the last one of a closed ledger was acknowledged
    L2   an acknowledged entry is on fewer bookies of its write set than an ack quorum, or cannot be read in the end
    L3   an entry of a closed ledger is on fewer bookies of its write set than an ack quorum
    L4   a copy has another payload or length than the writer sent, or the ledger's length is wrong
    L5   something of a closed ledger changed besides its bookies
    L6   segments that do not ascend, a bookie twice, a segment at or below an acknowledged entry, or an entry
         acknowledged by bookies that the metadata did not name then
    L7   a LAC was shown that was never acknowledged, went back, or is above the end
    L8   an append with two outcomes or none, out of order, or acknowledged after one that failed
    L9   a ledger was closed by recovery without enough fenced bookies, or without enough denials of the next entry
    L10  recovery failed although every bookie answers, or two recoveries disagree
    L11  a bookie was put into a closed ledger before it had the entries, or a recovery closed a ledger of which no
         ack quorum has an entry
    L13  an id was assigned twice
    L14  bytes were served that the writer had not sent, or an acknowledged entry was denied
    L15  auto-recovery fenced the ledger of a healthy writer, whose bookies were only a little behind
"""

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from bookie.client.entries.digest import Digest, DigestType
from bookie.errors import DigestMismatch
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState
from tests.sim.events import Event

__all__ = ["judge", "Violation"]

OK, NO_LEDGER, NO_ENTRY = 0, -7, -13
DENIALS = (NO_ENTRY, NO_LEDGER)
NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of an invariant."""

    invariant: str
    what: str
    at: float


@dataclass(slots=True)
class _Answers:
    """The answers to one client's fencing reads of a ledger: by the last entry, and by entry."""

    fenced: set[str] = field(default_factory=set)
    denied: dict[int, set[str]] = field(default_factory=dict)


def judge(
    history: Iterable[Event], copies: Mapping[str, Mapping[int, bytes]], lost: Collection[str] = ()
) -> list[Violation]:
    """Return every violation in the order of the clock; those of the final state come last.

    The history is of one ledger. `copies` has what each bookie holds of it in the end, as entries as stored; `lost`
    has the bookies that have lost data at some time.
    """
    judgement = _Judgement(copies, lost)
    for event in history:
        judgement.see(event)
    judgement.end()
    return judgement.found


class _Judgement:
    def __init__(self, copies: Mapping[str, Mapping[int, bytes]], lost: Collection[str]) -> None:
        self.found: list[Violation] = []
        self._copies = copies
        self._lost = frozenset(lost)
        self._now = 0.0
        self._ledger = -1
        self._asked: dict[int, bytes] = {}
        self._outcomes: dict[int, str] = {}
        self._taken: list[Event] = []
        self._acked: dict[int, bytes] = {}
        self._last_acked = -1
        self._first_failed = NEVER
        self._crashed: set[str] = set()
        self._metadata: LedgerMetadata | None = None
        self._answers: dict[str, _Answers] = {}
        self._lacs: dict[int, int] = {}
        self._shown = -1
        self._ends: list[tuple[str, int, int]] = []
        self._served: dict[int, bytes] = {}
        self._finished: set[int] = set()
        self._sees: dict[str, Callable[[Event], None]] = {
            "asked": self._see_asked,
            "acked": self._see_acked,
            "taken": self._see_taken,
            "forced": self._see_forced,
            "failed": self._see_failed,
            "lac": self._see_lac,
            "read": self._see_read,
            "unread": self._see_unread,
            "opened": self._see_end,
            "closed": self._see_end,
            "stored": self._see_stored,
            "answered": self._see_answered,
            "lacks": self._see_lacking,
            "hasty": self._see_hasty,
            "crashed": self._see_crashed,
        }

    def see(self, event: Event) -> None:
        self._now = event.at
        if event.what in self._sees:
            self._sees[event.what](event)

    def _say(self, invariant: str, what: str) -> None:
        self.found.append(Violation(invariant, f"ledger {self._ledger}, {what}", self._now))

    # Appends.

    def _see_asked(self, event: Event) -> None:
        self._ledger = event.ledger
        self._asked[event.number] = event.value

    def _see_taken(self, event: Event) -> None:
        self._outcome(event.number, "taken")
        if event.entry != len(self._taken) or event.entry != event.number:
            self._say("L8", f"entry {event.entry}: taken for append {event.number}, after {len(self._taken) - 1}")
        self._taken.append(event)

    def _see_forced(self, event: Event) -> None:
        if event.entry >= len(self._taken):
            self._say("L8", f"entry {event.entry}: forced, but only {len(self._taken)} were taken")
        for taken in self._taken[self._last_acked + 1 : event.entry + 1]:
            del self._outcomes[taken.number]
            self._see_acked(taken)

    def _see_acked(self, event: Event) -> None:
        entry = event.entry
        self._outcome(event.number, "acknowledged")
        if event.number > self._first_failed:
            self._say("L8", f"entry {entry}: acknowledged, although append {self._first_failed} failed")
        if entry != self._last_acked + 1 or entry != event.number:
            self._say("L8", f"entry {entry}: acknowledged for append {event.number}, after {self._last_acked}")
        self._acked[entry] = event.value
        self._last_acked = max(self._last_acked, entry)
        metadata = self._metadata
        if metadata is not None and metadata.state is LedgerState.CLOSED and entry > metadata.last_entry:
            self._say("L1", f"entry {entry}: acknowledged, but it was closed at {metadata.last_entry} before")

    def _see_failed(self, event: Event) -> None:
        self._outcome(event.number, "failed")
        self._first_failed = min(self._first_failed, event.number)
        if event.number <= self._last_acked:
            self._say("L8", f"append {event.number}: failed, although entry {self._last_acked} was acknowledged")

    def _outcome(self, count: int, what: str) -> None:
        if count in self._outcomes:
            self._say("L8", f"append {count}: {what}, and {self._outcomes[count]} before")
        self._outcomes[count] = what

    def _see_crashed(self, event: Event) -> None:
        self._crashed.add(event.who)

    # Readers.

    def _see_lac(self, event: Event) -> None:
        lac, handle = event.entry, event.number
        if lac < self._lacs.get(handle, -1):
            self._say("L7", f"LAC {lac} shown to {event.who}, which had seen {self._lacs[handle]}")
        self._lacs[handle] = lac
        self._shown = max(self._shown, lac)
        still_open = self._metadata is None or self._metadata.state is LedgerState.OPEN
        # A writer raises its LAC before it informs the application; a crash can come in between.
        if lac > self._last_acked and still_open and "writer" not in self._crashed:
            self._say("L7", f"LAC {lac} shown to {event.who}, but only {self._last_acked} is acknowledged")

    def _see_read(self, event: Event) -> None:
        sent = self._asked.get(event.entry)
        if sent != event.value:
            self._say("L14", f"entry {event.entry}: {event.who} was served bytes that nobody had sent")
        if event.who == "finish":
            self._finished.add(event.entry)

    def _see_unread(self, event: Event) -> None:
        if event.code in DENIALS and event.entry in self._acked:
            self._say("L14", f"entry {event.entry}: acknowledged, and denied to {event.who}")

    # Metadata.

    def _see_stored(self, event: Event) -> None:
        new: LedgerMetadata = event.value
        before, self._metadata = self._metadata, new
        if event.number == 0:
            if before is not None and self._ledger == event.ledger:
                self._say("L13", "the id was given twice")
            return
        if before is None:
            return
        self._ledger = event.ledger
        if problem := new.problem():
            self._say("L6", problem)
        for segment in new.segments:
            if len(set(segment.bookies)) < len(segment.bookies):
                self._say("L6", f"a bookie stands twice in the segment at entry {segment.first_entry}")
        if before.state is LedgerState.CLOSED:
            self._see_changed_when_closed(before, new)
        elif new.state is LedgerState.CLOSED and before.state is LedgerState.IN_RECOVERY and event.who != "writer":
            self._see_recovered(event.who, before, new)
        if new.state is LedgerState.OPEN:
            first = new.segments[-1].first_entry
            if new.segments[-1] != before.segments[-1] and first <= self._last_acked:
                self._say("L6", f"a segment begins at entry {first}, but {self._last_acked} is acknowledged")
        if new.state is LedgerState.CLOSED and new.last_entry < self._last_acked:
            self._say("L1", f"closed by {event.who} at {new.last_entry}, but {self._last_acked} is acknowledged")

    def _see_changed_when_closed(self, before: LedgerMetadata, new: LedgerMetadata) -> None:
        same = (
            new.state is LedgerState.CLOSED
            and (before.last_entry, before.length) == (new.last_entry, new.length)
            and [one.first_entry for one in before.segments] == [one.first_entry for one in new.segments]
        )
        if not same:
            self._say("L5", f"closed at {before.last_entry}, then {new.state.name} at {new.last_entry}")

    def _see_lacking(self, event: Event) -> None:
        self._say("L11", f"entry {event.entry}: {event.who} names {event.value}, which does not have it")

    def _see_hasty(self, event: Event) -> None:
        self._say("L15", f"fenced by {event.who}, although no bookie lacked an entry for as long as its grace")

    def _see_answered(self, event: Event) -> None:
        answers = self._answers.setdefault(event.who, _Answers())
        if event.entry < 0:
            if event.code == OK or event.code in DENIALS:
                answers.fenced.add(event.value)
        elif event.code in DENIALS:
            answers.denied.setdefault(event.entry, set()).add(event.value)

    def _see_recovered(self, who: str, before: LedgerMetadata, new: LedgerMetadata) -> None:
        answers = self._answers.get(who, _Answers())
        size, write, ack = new.ensemble_size, new.write_quorum, new.ack_quorum
        last = before.segments[-1].bookies
        for start in range(size):
            unknown = sum(last[(start + k) % size] not in answers.fenced for k in range(write))
            if unknown >= ack:
                self._say("L9", f"closed by {who}, to which {unknown} of {write} bookies did not answer the fence")
                break
        behind = new.last_entry + 1
        denied = answers.denied.get(behind, set()) & set(before.write_set(behind))
        if len(denied) < write - ack + 1:
            self._say("L9", f"entry {behind}: called missing by {who} when {len(denied)} fenced bookies had denied it")

    def _see_end(self, event: Event) -> None:
        self._ends.append((event.who, event.entry, event.number))

    # The final state.

    def end(self) -> None:
        for count in self._asked:
            if count not in self._outcomes and "writer" not in self._crashed:
                self._say("L8", f"append {count}: it never ended")
        metadata = self._metadata
        if metadata is None or self._ledger < 0:
            return
        closed = metadata.state is LedgerState.CLOSED
        if not closed:
            self._say("L10", "it could not be closed in the end")
            return
        for who, last, length in self._ends:
            if (last, length) != (metadata.last_entry, metadata.length):
                self._say("L10", f"{who} saw it end at {last} with {length} bytes, not at {metadata.last_entry}")
        if self._last_acked > metadata.last_entry:
            self._say("L1", f"entry {self._last_acked}: acknowledged, but it ends at {metadata.last_entry}")
        if self._shown > metadata.last_entry:
            self._say("L7", f"LAC {self._shown} was shown, but it ends at {metadata.last_entry}")
        length = sum(len(self._asked.get(entry, b"")) for entry in range(metadata.last_entry + 1))
        # Entries that were added out of order have the length at the time of their add; a recovery knows only that of
        # the last entry.
        if metadata.length not in {length, self._lengths().get(metadata.last_entry, 0)}:
            self._say("L4", f"length {metadata.length} in the metadata, {length} in its entries")
        for entry in range(metadata.last_entry + 1):
            if entry not in self._finished:
                self._say("L2" if entry in self._acked else "L3", f"entry {entry}: it cannot be read in the end")
        self._see_copies(metadata)

    def _lengths(self) -> dict[int, int]:
        """Return, by entry, the length of the ledger when it was added."""
        return dict(zip(self._asked, itertools.accumulate(map(len, self._asked.values())), strict=True))

    def _see_copies(self, metadata: LedgerMetadata) -> None:
        """Check what the bookies hold."""
        digest = Digest.of(DigestType(metadata.digest_type or 0), metadata.password)
        lengths = self._lengths()
        good: dict[int, set[str]] = {}
        for name, entries in self._copies.items():
            for entry, stored in entries.items():
                try:
                    opened = digest.open(stored, self._ledger, entry)
                except DigestMismatch:
                    self._say("L4", f"entry {entry}: the copy on {name} has no valid digest")
                    continue
                if bytes(opened.payload) != self._asked.get(entry) or opened.length != lengths[entry]:
                    self._say("L4", f"entry {entry}: the copy on {name} is not what the writer sent")
                good.setdefault(entry, set()).add(name)
        for entry in range(metadata.last_entry + 1):
            places = set(metadata.write_set(entry))
            copies = len((good.get(entry, set()) | self._lost) & places)
            if copies < metadata.ack_quorum:
                invariant = "L2" if entry in self._acked else "L3"
                self._say(invariant, f"entry {entry}: on {copies} bookies of its write set {sorted(places)} in the end")
