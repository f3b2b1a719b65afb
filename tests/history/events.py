"""A history: the requests and answers of clients, and what was done to the bookie, in the order of one clock.

An event is one JSON line. `at` is the monotonic clock of the machine in nanoseconds, the same for every process on
it.

    invoke   id, client, op, ledger, entry, bodies, lac, key     before the request is sent
    return   id, client, op, ledger, entry, bodies, lac, code    after the answer was received; none: unknown outcome
    nemesis  op, code                                            start, refused, kill, fault, exit, verify, verified

`op` of a request is add, recovery_add, fence, read, batch_read or last. Adds and batches concern as many consecutive
entries as `bodies` has fingerprints; an add's answers may come in parts, each with the entries that it is for.
Recording is thread-safe; nothing else here is shared.
"""

import hashlib
import itertools
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["Event", "fingerprint", "History"]

HEADER = 32
"""Of a stored entry: ledger, entry, LAC, length. The last two may differ between copies of one entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event, which is one line of a history file.

    `entry` is the first entry concerned, or -1; `code` is the wire's, or a process's exit code.
    """

    at: int
    kind: str
    op: str
    id: int = 0
    client: str = ""
    ledger: int = -1
    entry: int = -1
    bodies: tuple[str, ...] = ()
    lac: int = -1
    key: str = ""
    code: int = 0


def fingerprint(stored: bytes | memoryview) -> str:
    """Return what identifies an entry: its ids and its payload, without the LAC that its writer knew."""
    digest = hashlib.sha1(stored[:16])
    digest.update(stored[HEADER:])
    return digest.hexdigest()[:16]


class History:
    """The events in the order of recording. `invoke` returns the id that the request's answers carry."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.events = list(events)
        self._ids = itertools.count(1)

    def invoke(
        self, client: str, op: str, ledger: int, entry: int, bodies: Sequence[str] = (), *, lac: int = -1, key: str = ""
    ) -> int:
        """Record a request before it is sent, and return the id for its answers."""
        number = next(self._ids)
        self.events.append(
            Event(
                at=time.monotonic_ns(),
                kind="invoke",
                op=op,
                id=number,
                client=client,
                ledger=ledger,
                entry=entry,
                bodies=tuple(bodies),
                lac=lac,
                key=key,
            )
        )
        return number

    def answer(
        self,
        number: int,
        client: str,
        op: str,
        ledger: int,
        entry: int,
        code: int,
        bodies: Sequence[str] = (),
        *,
        lac: int = -1,
    ) -> None:
        """Record an answer after it was received. For adds, `bodies` has the entries that this answer is for."""
        self.events.append(
            Event(
                at=time.monotonic_ns(),
                kind="return",
                op=op,
                id=number,
                client=client,
                ledger=ledger,
                entry=entry,
                bodies=tuple(bodies),
                lac=lac,
                code=code,
            )
        )

    def nemesis(self, op: str, code: int = 0, at: int | None = None) -> None:
        """Record what was done to the bookie, or what happened to it."""
        self.events.append(Event(at=at if at is not None else time.monotonic_ns(), kind="nemesis", op=op, code=code))

    def save(self, path: Path) -> None:
        """Write one JSON object per line, without empty fields."""
        with path.open("w") as out:
            for event in self.events:
                out.write(json.dumps({name: value for name, value in asdict(event).items() if value not in ("", -1)}))
                out.write("\n")

    @classmethod
    def load(cls, path: Path) -> "History":
        """Read what `save` wrote."""
        lines = map(json.loads, path.read_text().splitlines())
        return cls(Event(**{**line, "bodies": tuple(line["bodies"])}) for line in lines)
