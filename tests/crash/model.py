"""What a bookie must hold: every acknowledged entry of every ledger that was not deleted. It checks everything that
is read.

It replaces a `History` behind a `Peer`, for runs that are too long to be recorded: payloads follow from ledger and
entry, so a response is checked when it arrives. Several threads use it, each writing its own ledgers.
"""

import itertools
import random
import threading

from tests.crash.peer import OK, Ledger, Peer, body_of, size_of
from tests.history.events import History, fingerprint

__all__ = ["Model"]

BATCH_ENTRIES, BATCH_BYTES = 1000, 1 << 19
READS = ("read", "batch_read")


class Model(History):
    """`problems` are sentences about errors, and must stay empty. `bytes` is the size of live ledgers' records."""

    def __init__(self, first_ledger: int) -> None:
        super().__init__()
        self.problems: list[str] = []
        self.live: dict[int, Ledger] = {}
        self.deleted: set[int] = set()
        self.acknowledged = self.bytes = self.read_back = 0
        self._bytes_of: dict[int, int] = {}
        self._ids = itertools.count(first_ledger)
        self._requests = itertools.count(1)
        self._must: dict[int, bool] = {}
        self._lock = threading.Lock()

    # Ledgers.

    def open(self) -> Ledger:
        """Create a ledger; it is in the metadata store before its first entry is sent."""
        with self._lock:
            ledger = Ledger(next(self._ids))
            self.live[ledger.id] = ledger
            self._bytes_of[ledger.id] = 0
        return ledger

    def acknowledge(self, ledger: Ledger, entry: int) -> None:
        """Record that the bookie has acknowledged an entry."""
        with self._lock:
            if entry in ledger.acked:
                return
            ledger.acknowledge(entry)
            size = 4 + size_of(ledger.id, entry)
            self.acknowledged += 1
            self.bytes += size
            self._bytes_of[ledger.id] += size

    def forget(self, ledger: Ledger) -> None:
        """Allow a ledger to be missing from now on; call it before deleting the ledger."""
        with self._lock:
            self.deleted.add(ledger.id)
            self.live.pop(ledger.id)
            self.bytes -= self._bytes_of.pop(ledger.id)

    def some(self, rng: random.Random) -> Ledger | None:
        """Return a random live ledger."""
        with self._lock:
            return rng.choice(list(self.live.values())) if self.live else None

    def all(self) -> list[Ledger]:
        """Return the live ledgers."""
        with self._lock:
            return list(self.live.values())

    # Reports of a peer.

    def invoke(self, _client: str, op: str, ledger: int, entry: int, *_: object, **__: object) -> int:  # type: ignore[override]
        number = next(self._requests)
        known = self.live.get(ledger)
        if op in READS:
            self._must[number] = known is not None and entry in known.acked
        return number

    def answer(  # type: ignore[override]
        self, number: int, _client: str, op: str, ledger: int, entry: int, code: int, bodies: object = (), **_: object
    ) -> None:
        if op not in READS:
            return
        must = self._must.pop(number)
        if code != OK:
            if must and ledger not in self.deleted:
                self.problems.append(f"ledger {ledger}, entry {entry}: acknowledged, but {op} answers {code}")
            return
        assert isinstance(bodies, list)
        for at, found in enumerate(bodies, entry):
            if found != fingerprint(body_of(ledger, at, -1)):
                self.problems.append(f"ledger {ledger}, entry {at}: other bytes than were written")
        self.read_back += len(bodies)

    # Verification.

    def verify(self, peer: Peer, ledgers: list[Ledger]) -> None:
        """Read these ledgers from end to end, and add missing entries to `problems`."""
        for ledger in ledgers:
            at, last = 0, max(ledger.acked, default=-1)
            while at <= last:
                code, count = peer.batch_read(ledger.id, at, BATCH_ENTRIES, BATCH_BYTES)
                if code == OK and not count:
                    self.problems.append(f"ledger {ledger.id}, entry {at}: an empty batch")
                at += count if code == OK and count else 1
