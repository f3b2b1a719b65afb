"""A modelled bookie: the guarantees of a real one for adds, fences, reads and restarts, without files and sockets.

It was written after the wire protocol and the bookie, not after the client. Adds and fences go to memory and to a
journal, and are answered after the sync that covers them. A crash keeps what was synced and any number of records
after that. A bookie that lost data comes back with its ledgers fenced and in limbo: it then answers "unknown" where
others answer "no".

All codes are those of the classes of `bookie.errors`. `bugs` has the names of bugs that a test has planted.
"""

import random
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from bookie.availability import AvailableEntries, encode
from bookie.client.wire.answers_v3 import LacAnswer, ReadAnswer
from bookie.client.wire.bookie_space import BookieInfo
from bookie.client.wire.flags import LAST_ENTRY, Flags
from tests.sim.loop import VirtualLoop

__all__ = ["ModelBookie", "Reply"]

OK, READ_ERROR, NO_LEDGER, NO_ENTRY = 0, -1, -7, -13
FENCED, UNAUTHORIZED, READ_ONLY, TOO_MANY, UNKNOWN = -101, -102, -104, -105, -108
HEADER = 32

Reply = Callable[[int, Any, bool], None]
"""Code, value, and whether the ledger is fenced here."""


class _Record(NamedTuple):
    """A journal record. `entry` is that of an add; `data` is its bytes, a key, or the packet of an explicit LAC."""

    kind: str
    ledger: int
    entry: int
    data: bytes


class _Ledger:
    """A ledger of a simulated bookie, whose entries are in memory."""

    __slots__ = ("entries", "explicit", "fenced", "key", "lac", "last", "limbo", "waiting")

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.entries: dict[int, bytes] = {}
        self.explicit: bytes | None = None
        self.fenced = False
        self.limbo = False
        self.lac = -1
        self.last = -1
        self.waiting: list[Callable[[], None]] = []

    def raised(self, lac: int) -> None:
        """Take over a LAC, and inform those that wait for a higher one."""
        if lac > self.lac:
            self.lac = lac
            self.tell()

    def tell(self) -> None:
        waiting, self.waiting = self.waiting, []
        for notify in waiting:
            notify()


class ModelBookie:
    """The bookie. `sync_s` is the time of a sync, and `slowed_s` what a slow disk adds to it; attributes that nothing
    else sets are faults for the nemesis.
    """

    def __init__(self, name: str, loop: VirtualLoop, rng: random.Random, bugs: Collection[str] = ()) -> None:
        self.name = name
        self.up = True
        self.incarnation = 0
        self.sync_s = 0.001
        self.slowed_s = 0.0
        self.read_s = 0.0002
        self.read_only = False
        self.refuse_rate = 0.0
        self.eio_rate = 0.0
        self.rot_rate = 0.0
        self.lies = False
        """Syncs succeed and keep nothing."""
        self.lost_data = False
        """It lost something at some time, and said so."""
        self.ledgers: dict[int, _Ledger] = {}
        self.arrived: dict[int, float] = {}
        """When each entry of the one ledger arrived first."""
        self._loop = loop
        self._rng = rng
        self._bugs = frozenset(bugs)
        self._journal: list[_Record] = []
        self._synced = 0
        self._kept = 0  # what is really on a disk whose syncs do nothing
        self._syncing = False
        self._unsynced: list[tuple[int, Callable[[], None]]] = []
        self._paused = False
        self._inbox: list[Callable[[], None]] = []

    # Faults.

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        inbox, self._inbox = self._inbox, []
        for work in inbox:
            self.work(work)

    def crash(self) -> None:
        """Crash at once; what was not synced may be lost."""
        self.up = False
        self._paused = False
        self.incarnation += 1
        sure = self._kept if self.lies else self._synced
        kept = self._rng.randint(sure, len(self._journal))
        if kept < self._synced:
            self.lost_data = True
        if "amnesia" in self._bugs:
            kept = 0
        self._journal = self._journal[:kept]
        self._inbox, self._unsynced, self._syncing = [], [], False
        self.ledgers = {}

    def wipe(self) -> None:
        """Lose all disks while the bookie is down."""
        self._journal = []
        self.lost_data = True

    def start(self, served: Collection[int]) -> None:
        """Replay the journal. `served` are the ledgers that should be here; after a loss they are fenced, in limbo."""
        self._synced = self._kept = len(self._journal)
        for record in self._journal:
            self._replay(record)
        if self.lost_data:
            for number in served:
                known = self.ledgers.setdefault(number, _Ledger(b""))
                known.limbo = known.fenced = True
        self.up = True

    def durable(self, ledger: int) -> set[int]:
        """Return the entries that would survive a crash."""
        synced = self._journal[: self._synced]
        return {one.entry for one in synced if one.kind == "add" and one.ledger == ledger}

    def work(self, what: Callable[[], None]) -> None:
        """Call a function now, or when the process continues."""
        if self._paused:
            self._inbox.append(what)
        else:
            what()

    # Requests.

    def add(self, stored: bytes, key: bytes, flags: int, reply: Reply, *, deferred: bool = False) -> None:
        number, entry, lac = (int.from_bytes(stored[at : at + 8], "big", signed=True) for at in (0, 8, 16))
        recovery = bool(flags & Flags.RECOVERY_ADD)
        if self._refuses():
            return reply(TOO_MANY, None, False)
        if self.read_only and not flags & Flags.HIGH_PRIORITY:
            return reply(READ_ONLY, None, False)
        known = self._handle(number, key)
        if known is None:
            return reply(UNAUTHORIZED, None, False)
        if known.fenced and not recovery and "ignore_fence" not in self._bugs:
            return reply(FENCED, None, True)
        known.entries[entry] = stored
        self.arrived.setdefault(entry, self._loop.time())
        known.last = max(known.last, entry)
        record = _Record("add", number, entry, stored)
        early = deferred or "ack_before_sync" in self._bugs
        self._log(record, None if early else lambda: reply(OK, None, known.fenced))
        if early:
            reply(OK, None, known.fenced)
        return known.raised(lac)

    def read(self, number: int, entry: int, flags: int, key: bytes | None, reply: Reply) -> None:
        if flags & Flags.FENCE:
            return self._fence(number, key, reply, lambda: self._read(number, entry, reply, fencing=True))
        if self._refuses():
            return reply(TOO_MANY, None, False)
        return self._later(lambda: self._read(number, entry, reply))

    def batch_read(
        self, number: int, start: int, limits: tuple[int, int], flags: int, key: bytes | None, reply: Reply
    ) -> None:
        """Answer a batch read. `limits` are the number of entries, 0 for no limit, and the bytes."""
        if flags & Flags.FENCE:
            return self._fence(number, key, reply, lambda: self._batch(number, start, limits, reply))
        if self._refuses():
            return reply(TOO_MANY, None, False)
        return self._later(lambda: self._batch(number, start, limits, reply))

    def wait_for_lac(self, number: int, previous: int, timeout_s: float, reply: Reply) -> None:
        known = self.ledgers.get(number)
        if known is None:
            return reply(NO_LEDGER, None, False)
        if known.lac > previous:
            return self._end_of_wait(number, previous, reply)
        done = False

        def end() -> None:
            nonlocal done
            if not done:
                done = True
                self._end_of_wait(number, previous, reply)

        known.waiting.append(end)
        life = self.incarnation
        self._loop.event(timeout_s, lambda: end() if self.up and life == self.incarnation else None)
        return None

    def read_lac(self, number: int, reply: Reply) -> None:
        known = self.ledgers.get(number)
        if known is None:
            return reply(NO_LEDGER, None, False)
        last = known.entries.get(known.last)
        if known.limbo and last is None:
            return reply(UNKNOWN, None, known.fenced)
        if known.explicit is None and last is None:
            return reply(NO_ENTRY, None, known.fenced)
        return reply(OK, LacAnswer(known.explicit, self._as_read(last)), known.fenced)

    def write_lac(self, number: int, lac: int, packet: bytes, key: bytes, reply: Reply) -> None:
        if self.read_only:
            return reply(READ_ONLY, None, False)
        known = self._handle(number, key)
        if known is None:
            return reply(UNAUTHORIZED, None, False)
        known.explicit = packet
        self._log(_Record("lac", number, lac, packet), lambda: reply(OK, None, known.fenced))
        return known.raised(lac)

    def force(self, number: int, reply: Reply) -> None:
        self._log(_Record("none", number, -1, b""), lambda: reply(OK, None, False))

    def list_entries(self, number: int, reply: Reply) -> None:
        known = self.ledgers.get(number)
        if known is None:
            return reply(NO_LEDGER, None, False)
        ranges = [(entry, entry) for entry in sorted(known.entries)]
        return reply(OK, AvailableEntries.decode(encode(ranges)), known.fenced)

    def bookie_info(self, reply: Reply) -> None:
        reply(OK, BookieInfo(1 << 40, 1 << 39), False)

    # Inside.

    def _refuses(self) -> bool:
        return bool(self.refuse_rate) and self._rng.random() < self.refuse_rate

    def _later(self, what: Callable[[], None]) -> None:
        life = self.incarnation
        self._loop.event(self.read_s, lambda: self.work(what) if self.up and life == self.incarnation else None)

    def _handle(self, number: int, key: bytes) -> _Ledger | None:
        """Return the ledger, created if needed, or None if it has another key."""
        known = self.ledgers.get(number)
        if known is None:
            known = self.ledgers[number] = _Ledger(key)
            self._journal.append(_Record("key", number, -1, key))
        elif not known.key:
            known.key = key
        return known if known.key == key else None

    def _fence(self, number: int, key: bytes | None, reply: Reply, then: Callable[[], None]) -> None:
        known = self._handle(number, key) if key is not None else None
        if known is None:
            return reply(UNAUTHORIZED, None, False)
        if not known.fenced:
            known.fenced = True
            known.tell()
            return self._log(_Record("fence", number, -1, b""), then)
        return self._log(_Record("none", number, -1, b""), then)

    def _read(self, number: int, entry: int, reply: Reply, *, fencing: bool = False) -> None:
        known = self.ledgers.get(number)
        if known is None:
            return reply(NO_LEDGER, None, False)
        if self.eio_rate and self._rng.random() < self.eio_rate:
            return reply(NO_ENTRY if "eio_is_noent" in self._bugs else READ_ERROR, None, known.fenced)
        if known.limbo and entry == LAST_ENTRY:
            return reply(UNKNOWN, None, known.fenced)
        stored = known.entries.get(known.last if entry == LAST_ENTRY else entry)
        if stored is None:
            return reply(UNKNOWN if known.limbo else NO_ENTRY, None, known.fenced)
        lac = None if fencing or known.limbo else known.lac
        return reply(OK, ReadAnswer(entry, self._as_read(stored), lac, None), known.fenced)

    def _batch(self, number: int, start: int, limits: tuple[int, int], reply: Reply) -> None:
        known = self.ledgers.get(number)
        if known is None:
            return reply(NO_LEDGER, None, False)
        if self.eio_rate and self._rng.random() < self.eio_rate:
            return reply(READ_ERROR, None, known.fenced)
        count_max, bytes_max = limits
        run: list[bytes] = []
        size = 0
        while (stored := known.entries.get(start + len(run))) is not None:
            size += 4 + len(stored)
            if run and ((count_max and len(run) >= count_max) or size > bytes_max):
                break
            run.append(stored)
        if not run:
            return reply(UNKNOWN if known.limbo else NO_ENTRY, None, known.fenced)
        found = [self._as_read(stored) or b"" for stored in run]
        joined = b"".join(len(one).to_bytes(4, "big") + one for one in found)
        return reply(OK, (joined, None if known.limbo else known.lac), known.fenced)

    def _end_of_wait(self, number: int, previous: int, reply: Reply) -> None:
        known = self.ledgers[number]
        if known.last < 0 and known.lac < 0:
            return reply(NO_ENTRY, None, known.fenced)
        stored = known.entries.get(previous + 1) if known.lac > previous else None
        entry = previous + 1 if stored is not None else None
        return reply(OK, ReadAnswer(entry, self._as_read(stored), known.lac, None), known.fenced)

    def _as_read(self, stored: bytes | None) -> bytes | None:
        """Return the bytes as the disk returns them."""
        if stored is None or not self.rot_rate or self._rng.random() >= self.rot_rate:
            return stored
        at = self._rng.randrange(len(stored))
        return stored[:at] + bytes([stored[at] ^ 1 << self._rng.randrange(8)]) + stored[at + 1 :]

    def _log(self, record: _Record, then: Callable[[], None] | None) -> None:
        """Append a record to the journal, and call `then` once it is synced."""
        self._journal.append(record)
        if then is not None:
            self._unsynced.append((len(self._journal), then))
        if not self._syncing:
            self._sync()

    def _sync(self) -> None:
        self._syncing = True
        end, life = len(self._journal), self.incarnation
        self._loop.event(self.sync_s + self.slowed_s, lambda: self.work(lambda: self._synced_up_to(end, life)))

    def _synced_up_to(self, end: int, life: int) -> None:
        if life != self.incarnation:
            return
        self._synced = end
        if not self.lies:
            self._kept = end
        done = [then for at, then in self._unsynced if at <= end]
        self._unsynced = self._unsynced[len(done) :]
        self._syncing = False
        if len(self._journal) > end:
            self._sync()
        for then in done:
            then()

    def _replay(self, record: _Record) -> None:
        if record.kind == "none":
            return
        known = self.ledgers.setdefault(record.ledger, _Ledger(b""))
        if record.kind == "key":
            known.key = record.data
        elif record.kind == "fence":
            known.fenced = "lose_fence" not in self._bugs
        elif record.kind == "lac":
            known.explicit, known.lac = record.data, max(known.lac, record.entry)
        else:
            known.entries[record.entry] = record.data
            known.last = max(known.last, record.entry)
            known.lac = max(known.lac, int.from_bytes(record.data[16:24], "big", signed=True))
