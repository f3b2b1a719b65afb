"""The history of a world in shared memory: the events of tests/history, as records that outlive a killed process."""

from collections.abc import Iterator, Sequence

from tests.engine.runtime import RECORD, Runtime
from tests.history.events import Event

KINDS = ("", "invoke", "return", "nemesis")
OPS = (
    *("", "add", "recovery_add", "fence", "read", "batch_read", "last"),
    *("start", "refused", "kill", "exit", "verify", "verified", "delete"),
    *("begin", "flushed", "compacted", "doubt_journal", "doubt_syncs", "doubt_files"),
)
OP_NUMBERS = {op: number for number, op in enumerate(OPS)}
BODY_BYTES = 8


class Invocation:
    """A request that was recorded: its number and its client, what it asks, and when it was sent."""

    def __init__(self, number: int, client: int, op: str, ledger: int, entry: int, body: bytes, at_ns: int) -> None:
        self.number = number
        self.client = client
        self.op = op
        self.ledger = ledger
        self.entry = entry
        self.body = body
        self.at_ns = at_ns


class Recorder:
    """Appends to the history of the world. Requests get numbers that are unique in the world."""

    def __init__(self, runtime: Runtime, run: int) -> None:
        self._now = runtime.now
        self._record = runtime.record
        self._next = (run << 24) + 1

    def invoke(
        self, client: int, op: str, ledger: int, entry: int, bodies: Sequence[bytes] = (), *, lac: int = -1
    ) -> int:
        """Record a request before it is sent, and return its number."""
        number = self._next
        self._next += 1
        self._write(1, op, (client, 0, number, ledger, entry, lac), bodies)
        return number

    def answer(
        self, invocation: Invocation, code: int, entry: int, bodies: Sequence[bytes] = (), *, lac: int = -1
    ) -> None:
        """Record an answer after it was received. `entry` is the first one that it carries."""
        number, ledger = invocation.number, invocation.ledger
        self._write(2, invocation.op, (invocation.client, code, number, ledger, entry, lac), bodies)

    def nemesis(self, op: str, code: int = 0) -> None:
        """Record what happened to the bookie."""
        self._write(3, op, (0, code, 0, -1, -1, -1), ())

    def delete(self, ledger: int) -> None:
        """Record that a ledger is deleted from the metadata store."""
        self._write(3, "delete", (0, 0, 0, ledger, -1, -1), ())

    def _write(self, kind: int, op: str, numbers: tuple[int, ...], bodies: Sequence[bytes]) -> None:
        head = RECORD.pack(kind, OP_NUMBERS[op], *numbers, self._now(), len(bodies))
        self._record(head + b"".join(bodies) if bodies else head)


def heads(data: bytes) -> Iterator[tuple[str, str, int, int]]:
    """Yield kind, operation, ledger and entry of each event of a history, which is quicker than `events`."""
    at = 0
    while at < len(data):
        kind, op, _, _, _, ledger, entry, _, _, count = RECORD.unpack_from(data, at)
        at += RECORD.size + BODY_BYTES * count
        yield KINDS[kind], OPS[op], ledger, entry


def events(data: bytes) -> Iterator[Event]:
    """Yield the events of a history, in the order in which they were recorded."""
    at = 0
    while at < len(data):
        kind, op, client, code, number, ledger, entry, lac, when, count = RECORD.unpack_from(data, at)
        at += RECORD.size
        bodies = tuple(data[at + BODY_BYTES * i : at + BODY_BYTES * (i + 1)].hex() for i in range(count))
        at += BODY_BYTES * count
        yield Event(
            at=when,
            kind=KINDS[kind],
            op=OPS[op],
            id=number,
            client=f"peer {client}",
            ledger=ledger,
            entry=entry,
            bodies=bodies,
            lac=lac,
            code=code,
        )


def split_deleted(history: list[Event]) -> tuple[list[Event], list[Event]]:
    """Return the events of ledgers that exist, with what happened to the bookie; and those of deleted ledgers, up to
    their deletion. After it the bookie may deny a ledger, or have it again.
    """
    deleted: dict[int, int] = {}
    for event in history:
        if event.op == "delete":
            deleted.setdefault(event.ledger, event.at)
    existing = [event for event in history if event.op != "delete" and event.ledger not in deleted]
    return existing, [
        event for event in history if event.kind != "nemesis" and event.at < deleted.get(event.ledger, event.at)
    ]
