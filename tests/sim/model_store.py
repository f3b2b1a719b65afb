"""A modelled metadata store: compare-and-set by version, watches, and failures between it and a client.

Calls of a client may be slow, may fail before they were executed, or after (the answer is lost), and fail at once
while its session is gone. The store itself is always right: what it did, in order, is in the world's history.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from bookie.errors import LedgerExists, MetadataStoreError, MetadataVersionConflict, NoSuchLedgerMetadata
from bookie.metadata.driver import Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata
from tests.sim.events import Event
from tests.sim.loop import VirtualLoop

__all__ = ["ClientStore", "ModelStore"]

T = TypeVar("T")
Listener = Callable[[Any], None]


class ModelStore:
    """The stored values. Its calls take effect at once; `ClientStore` connects a client to it."""

    def __init__(
        self,
        loop: VirtualLoop,
        history: list[Event],
        changed: Callable[[str, int, LedgerMetadata, LedgerMetadata], None],
    ) -> None:
        """`changed` is called with the client, the ledger, and the values before and after."""
        self._changed = changed
        self.ledgers: dict[int, Versioned[LedgerMetadata]] = {}
        self.writable: frozenset[str] = frozenset()
        self.read_only: frozenset[str] = frozenset()
        self._loop = loop
        self._history = history
        self._next_id = 0
        self._watchers: list[tuple[object, Callable[[], None]]] = []

    def new_id(self) -> int:
        self._next_id += 1
        return self._next_id

    def create(self, who: str, ledger: int, metadata: LedgerMetadata) -> Versioned[LedgerMetadata]:
        if ledger in self.ledgers:
            raise LedgerExists(f"ledger {ledger}: exists")
        return self._put(who, ledger, metadata, 0)

    def read(self, ledger: int) -> Versioned[LedgerMetadata]:
        stored = self.ledgers.get(ledger)
        if stored is None:
            raise NoSuchLedgerMetadata(f"ledger {ledger}: unknown")
        return stored

    def write(self, who: str, ledger: int, metadata: LedgerMetadata, version: int) -> Versioned[LedgerMetadata]:
        stored = self.read(ledger)
        if stored.version != version:
            raise MetadataVersionConflict(f"ledger {ledger}: version {stored.version} is stored, not {version}")
        self._changed(who, ledger, stored.value, metadata)
        return self._put(who, ledger, metadata, version + 1)

    def delete(self, ledger: int, version: int | None) -> None:
        stored = self.read(ledger)
        if version is not None and stored.version != version:
            raise MetadataVersionConflict(f"ledger {ledger}: version {stored.version} is stored, not {version}")
        del self.ledgers[ledger]
        self._tell(ledger)

    def set_bookies(self, writable: frozenset[str], read_only: frozenset[str]) -> None:
        if (writable, read_only) != (self.writable, self.read_only):
            self.writable, self.read_only = writable, read_only
            self._tell("bookies")

    def watch(self, what: object, notify: Callable[[], None]) -> tuple[object, Callable[[], None]]:
        watcher = (what, notify)
        self._watchers.append(watcher)
        return watcher

    def unwatch(self, watcher: tuple[object, Callable[[], None]]) -> None:
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    def served(self, bookie: str) -> list[int]:
        """Return the ledgers whose metadata have this bookie."""
        return [
            ledger
            for ledger, stored in self.ledgers.items()
            if any(bookie in segment.bookies for segment in stored.value.segments)
        ]

    def _put(self, who: str, ledger: int, metadata: LedgerMetadata, version: int) -> Versioned[LedgerMetadata]:
        former = self.ledgers.get(ledger)
        created_ms = int(self._loop.time() * 1000) if former is None else former.created_ms
        stored = Versioned(metadata, version, created_ms)
        self.ledgers[ledger] = stored
        self._history.append(Event(self._loop.time(), who, "stored", ledger, value=metadata, number=version))
        self._tell(ledger)
        return stored

    def _tell(self, what: object) -> None:
        for watched, notify in list(self._watchers):
            if watched == what:
                notify()


class _Watch:
    """A subscription: the listener gets the newest state a while after a change, and never an older one again."""

    def __init__(self, owner: "ClientStore", what: object, read: Callable[[], Any], listener: Listener) -> None:
        self._owner = owner
        self._read = read
        self._listener: Listener | None = listener
        self._reported: Any = owner  # no state yet
        self._due = False
        self._watcher = owner.store.watch(what, self.changed)
        owner.watches.append(self)
        self.changed()

    def changed(self) -> None:
        if not self._due and not self._owner.away:
            self._due = True
            self._owner.loop.event(self._owner.delay(), self._tell)

    def close(self) -> None:
        self._listener = None
        self._owner.store.unwatch(self._watcher)
        if self in self._owner.watches:
            self._owner.watches.remove(self)

    def _tell(self) -> None:
        self._due = False
        if self._listener is None or self._owner.away or not self._owner.alive:
            return
        state = self._read()
        if state != self._reported:
            self._reported = state
            self._listener(state)


class ClientStore:
    """Implements `Metadata` for one client. The rates are probabilities for each call."""

    def __init__(self, store: ModelStore, loop: VirtualLoop, rng: random.Random, who: str) -> None:
        self.store = store
        self.loop = loop
        self.who = who
        self.alive = True
        self.away = False
        self.base_s = 0.002
        self.stall_rate = 0.0
        self.stall_s = 1.0
        self.fail_rate = 0.0
        self.lost_answer_rate = 0.0
        self.watches: list[_Watch] = []
        self._rng = rng

    def delay(self) -> float:
        return self.base_s * (1 + self._rng.random())

    def back(self) -> None:
        """Restore the session; watched values may have changed meanwhile."""
        self.away = False
        for watch in list(self.watches):
            watch.changed()

    async def new_id(self) -> int:
        return await self._call(self.store.new_id)

    async def create(self, ledger: int, metadata: LedgerMetadata) -> Versioned[LedgerMetadata]:
        return await self._call(lambda: self.store.create(self.who, ledger, metadata))

    async def read(self, ledger: int, *, latest: bool = False) -> Versioned[LedgerMetadata]:  # noqa: ARG002 - it is
        return await self._call(lambda: self.store.read(ledger))

    async def write(self, ledger: int, metadata: LedgerMetadata, version: int) -> Versioned[LedgerMetadata]:
        return await self._call(lambda: self.store.write(self.who, ledger, metadata, version))

    async def delete(self, ledger: int, version: int | None = None) -> None:
        return await self._call(lambda: self.store.delete(ledger, version))

    async def ledgers(self) -> AsyncIterator[list[int]]:
        yield await self._call(lambda: sorted(self.store.ledgers))

    def watch(self, ledger: int, listener: Callable[[Versioned[LedgerMetadata] | None], None]) -> _Watch:
        return _Watch(self, ledger, lambda: self.store.ledgers.get(ledger), listener)

    async def bookies(self, *, read_only: bool) -> frozenset[str]:
        return await self._call(lambda: self.store.read_only if read_only else self.store.writable)

    def watch_bookies(self, listener: Callable[[frozenset[str]], None], *, read_only: bool) -> _Watch:
        return _Watch(self, "bookies", lambda: self.store.read_only if read_only else self.store.writable, listener)

    async def close(self) -> None:
        for watch in list(self.watches):
            watch.close()

    async def _call(self, work: Callable[[], T]) -> T:
        """Send a call, execute it, and return the answer; each way takes a while, and may fail."""
        done: asyncio.Future[T] = self.loop.create_future()
        chance = self._rng.random
        there = self.delay()
        if self.stall_rate and chance() < self.stall_rate:
            there += self.stall_s * chance()
        fails = self.away or bool(self.fail_rate and chance() < self.fail_rate)
        lost = bool(self.lost_answer_rate and chance() < self.lost_answer_rate)

        def arrive() -> None:
            if fails:
                self.loop.event(self.delay(), come_back, None, self._trouble())
                return
            try:
                result: T | None = work()
                error: Exception | None = None
            except (LedgerExists, MetadataVersionConflict, NoSuchLedgerMetadata) as known:
                result, error = None, known
            if lost:
                result, error = None, self._trouble()
            self.loop.event(self.delay(), come_back, result, error)

        def come_back(result: Any, error: Exception | None) -> None:
            if done.done() or not self.alive:
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)

        self.loop.event(there, arrive)
        return await done

    def _trouble(self) -> MetadataStoreError:
        return MetadataStoreError("the metadata store did not answer in time; ask again")
