"""What a writer does for threads that add entries over connections of their own; see `client.blocking.direct_adds`.

Event loop, except `take_over` and what the adder does.
"""

import asyncio
from abc import abstractmethod
from contextlib import AbstractContextManager
from typing import NamedTuple

import numpy as np

from bookie._fast.client.direct_adds import DirectAdder
from bookie.client.config import ClientConfig
from bookie.client.contracts import Metadata
from bookie.client.entries.digest import Digest
from bookie.client.ledgers.adds import Adds
from bookie.client.ledgers.metadata_loop import Known
from bookie.client.ledgers.replacement import Replacer, still_open
from bookie.client.ledgers.senders import EnsembleSender
from bookie.errors import ClientClosed

__all__ = ["DirectWrites", "Placed"]

COLLECT_S = 0.25
"""How soon the event loop receives what bookies owe after entries were acknowledged, if no add does it before."""


class Placed(NamedTuple):
    """Where the entries from now on are stored.

    It holds as long as the window's `changes` are these. `since_s` is a time, on the loop's clock, after which the
    metadata store has said that the ledger is open. What a bookie stores over a connection that is older may be
    acknowledged: had the ledger been fenced before, this would not be so, and a fence that comes later is known to the
    bookie at the other end of the connection.
    """

    bookies: tuple[str, ...]
    changes: int
    since_s: float


class DirectWrites(Adds):
    """The part of a `LedgerWriter` that lets threads add entries directly."""

    known: Known
    digest: Digest
    _config: ClientConfig
    _store: Metadata
    _replacer: Replacer
    _senders: list[EnsembleSender]
    _recovers: bool
    _adder: DirectAdder | None = None
    _collecting: asyncio.TimerHandle | None = None

    @abstractmethod
    def _release(self) -> None:
        """Acknowledge what is complete."""

    @abstractmethod
    def _or_give_up(self) -> AbstractContextManager[None]:
        """Return a block that ends the ledger on any exception."""

    @property
    def plain(self) -> bool:
        """Whether entries only need to be stored by any ack quorum of their write set, in the order of their ids."""
        window = self._window
        return not (window.advanced or window.deferred or window.judged or self._recovers or self._rate.limited)

    def adder(self) -> DirectAdder:
        """Return what adds entries from threads, of a `plain` ledger."""
        waiting = self._backpressure.waiting
        self._adder = DirectAdder(self._window, self.digest.master_key, self.take_over, waiting)
        return self._adder

    def take_over(self) -> None:
        """Have the event loop go on with an add that began on a thread. Any thread. Raises ClientClosed."""
        if self._loop is None:
            raise ClientClosed(f"ledger {self.ledger}: the writer is not started")
        try:
            self._loop.call_soon_threadsafe(self._taken_over)
        except RuntimeError as error:  # the loop is closed
            raise ClientClosed(f"ledger {self.ledger}: the client is closed") from error

    def _taken_over(self) -> None:
        self._send()
        self._release()
        if not self._window.count:
            self._backpressure.made()
        if self._adder is not None:
            self._resolve(self._adder)

    def _resolve(self, adder: DirectAdder) -> None:
        """Send entries again to bookies that have not stored them over a direct connection, and wait for the others.

        The entries are acknowledged. If a bookie still does not store one, it is replaced before the next add, as when
        its response comes after those of an ack quorum.
        """
        for entry, index, pool, record in adder.doubtful_adds():
            sender = self._senders[index]
            if self._window.error is None and sender.bookie == pool.bookie:
                sender.send((memoryview(record), np.array([0, len(record)]), np.array([entry])))
        if adder.watched and self._collecting is None and self._loop is not None:
            self._collecting = self._loop.call_later(COLLECT_S, self._collect, adder)

    def _collect(self, adder: DirectAdder) -> None:
        self._collecting = None
        if adder.collect(rest=True) and self._loop is not None:
            self._collecting = self._loop.call_later(COLLECT_S, self._collect, adder)

    async def placed(self) -> Placed | None:
        """Return where entries are stored, or None if they cannot be added directly at present.

        It asks the metadata store whether the ledger is open, as where a lost connection is opened again.
        """
        window = self._window
        assert self._loop is not None
        since_s = self._loop.time()
        with self._or_give_up():
            await still_open(self._store, self.known, lambda: window.error is not None)
        if window.error is not None or window.holding or self._replacer.waiting:
            return None
        for sender in self._senders:
            sender.passed_over()
        return Placed(self.known.metadata.segments[-1].bookies, window.changes, since_s)
