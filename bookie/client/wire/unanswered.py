"""The requests of one connection that have no response yet, and the rule of V2 about their keys.

A V2 response names the ledger and the entry, not the request. A second request for the same entry therefore waits
until the first one is answered, even if the first caller has given up, so that no response is taken for that of
another request. V3 responses name a transaction that is used only once, and nothing waits.

Requests that are sent one by one are kept here, by key. Those that are sent in groups are in tables of their own:
channels have `channel.streams`, links have `AddsInFlight` and `ReadsInFlight`. No lock: its owner is an event loop or
has a lock.
"""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bookie.client.wire.request import Key, Row, Wire

T = TypeVar("T")
ADD, READ = 1, 2
"""The operations in V2 keys whose requests are also sent in groups."""


class Group(Protocol):
    """The requests of one operation that are sent in groups."""

    def knows(self, ledger: int, entries: NDArray[np.int64], /) -> bool:
        """Return whether a V2 response to one of these entries may still be due. Raises IllegalOperation if nobody else
        may request one of them.
        """
        ...


class Unanswered(Generic[T]):
    """What waits for responses on one connection: `T` is what the connection keeps for a request.

    `adds` and `reads` are the requests that are sent in groups.
    """

    __slots__ = ("_groups", "_singles", "_wire")

    def __init__(self, wire: Wire, *, adds: Group, reads: Group | None = None) -> None:
        self._wire = wire
        self._singles: dict[Key, T] = {}
        self._groups = {ADD: adds} if reads is None else {ADD: adds, READ: reads}

    def __len__(self) -> int:
        return len(self._singles)

    # --- the rule -----------------------------------------------------------------------------------------------------

    def must_wait(self, key: Key) -> bool:
        """Return whether a request with this key must wait, since its response could be taken for another one."""
        if key in self._singles:
            return True
        if self._wire.by_transaction or key[0] not in self._groups:
            return False
        return self._groups[key[0]].knows(key[1], np.array([key[2]], dtype=np.int64))

    def group_must_wait(self, op: int, ledger: int, entries: NDArray[np.int64]) -> bool:
        """Return whether a group of requests must wait: `op` is ADD or READ."""
        if self._wire.by_transaction:
            return False
        if self._singles and any((op, ledger, entry) in self._singles for entry in entries.tolist()):
            return True
        return self._groups[op].knows(ledger, entries)

    def stream_must_wait(self, ledger: int, first: int) -> bool:
        """Return whether a stream of adds from entry `first` on must wait for single adds."""
        if self._wire.by_transaction:
            return False
        return any(op == ADD and of == ledger and entry >= first for op, of, entry in self._singles)

    def late(self, is_late: Callable[[T], bool]) -> list[T]:
        """Return the requests that are late. In V2 their keys stay in use until the responses arrive, however late."""
        found = [(key, kept) for key, kept in self._singles.items() if is_late(kept)]
        if self._wire.by_transaction:
            for key, _ in found:
                del self._singles[key]
        return [kept for _, kept in found]

    # --- requests -----------------------------------------------------------------------------------------------------

    def sent(self, key: Key, kept: T) -> None:
        """Keep a request whose key is free."""
        self._singles[key] = kept

    def answered(self, row: Row) -> T | None:
        """Remove and return the request to which a response belongs; None if it belongs to none of these."""
        return self._singles.pop(self._wire.key(row), None)

    def lost(self) -> list[T]:
        """Remove and return all requests, since the connection has ended."""
        lost = list(self._singles.values())
        self._singles.clear()
        return lost
