"""The requests of one connection that have no response yet: what a response completes, and the rule of V2 about keys.

A V2 response names the ledger and the entry, not the request. A second request for the same entry therefore waits
until the first one is answered, even if the first caller has given up, so that no response is taken for that of
another request. V3 responses name a transaction that is used only once, and nothing waits.

Requests that are sent one by one are kept here by key, each with what waits for its value. Those that are sent in
groups are in one kind of compiled table, `AddsInFlight`; `StreamAdds` (channels) and `ReadsInFlight` extend it to pass
responses on. No lock: its owner is an event loop or has a lock.
"""

import math
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bookie._fast.client.adds_in_flight import AddsInFlight
from bookie.client.wire.receive import ReceiveBuffer
from bookie.client.wire.request import OK, Key, Request, Row, Wire
from bookie.errors import BookKeeperError, ProtocolVersionMismatch, ReadError

ADD, READ = 1, 2
"""The operations in V2 keys whose requests are also sent in groups."""


class Pending(Protocol):
    """A request without a response, with what waits for its value.

    Attributes:
        request: The request.
        deadline: When it times out, in seconds on the clock `time.monotonic`.
    """

    request: Request
    deadline: float

    @property
    def done(self) -> bool:
        """Whether it is completed, or nobody waits for it any more."""
        ...

    def succeed(self, value: Any, /) -> None:
        """Complete it with the value of the response, unless it is completed."""
        ...

    def fail(self, error: BookKeeperError, /) -> None:
        """Complete it with an error, unless it is completed."""
        ...


P = TypeVar("P", bound=Pending)


class Group(Protocol):
    """The requests of one operation that are sent in groups."""

    def knows(self, ledger: int, entries: NDArray[np.int64], /) -> bool:
        """Return whether a V2 response to one of these entries may still be due."""
        ...


class Unanswered(Generic[P]):
    """The requests without a response on one connection to a bookie. `address` names the bookie in errors.

    `adds` and `reads` are the requests that are sent in groups.
    """

    __slots__ = ("_address", "_adds", "_groups", "_singles", "_wire")

    def __init__(self, wire: Wire, address: str, *, adds: AddsInFlight, reads: Group | None = None) -> None:
        self._wire = wire
        self._address = address
        self._singles: dict[Key, P] = {}
        self._adds = adds
        self._groups: dict[int, Group] = {ADD: adds} if reads is None else {ADD: adds, READ: reads}

    def __len__(self) -> int:
        """Return the number of requests that were sent one by one."""
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
        """Return whether a stream of adds from entry `first` on must wait for earlier adds."""
        if self._wire.by_transaction:
            return False
        if any(op == ADD and of == ledger and entry >= first for op, of, entry in self._singles):
            return True
        return self._adds.knows_from(ledger, first)

    # --- requests -----------------------------------------------------------------------------------------------------

    def sent(self, pending: P) -> None:
        """Keep a request whose key is free."""
        self._singles[pending.request.key] = pending

    def late(self, now: float) -> list[P]:
        """Return the requests that time out, each once. In V2 their keys stay in use until the responses arrive,
        however late.
        """
        late = [pending for pending in self._singles.values() if pending.deadline <= now]
        for pending in late:
            if self._wire.by_transaction:
                del self._singles[pending.request.key]
            else:
                pending.deadline = math.inf
        return late

    def lost(self) -> list[P]:
        """Remove and return all requests, since the connection has ended."""
        lost = list(self._singles.values())
        self._singles.clear()
        return lost

    # --- responses ----------------------------------------------------------------------------------------------------

    def complete(self, row: Row, received: memoryview, buffer: ReceiveBuffer) -> BookKeeperError | None:
        """Complete the request to which a response belongs; ignore a response that belongs to none.

        Args:
            row: The response.
            received: The bytes to which the row refers.
            buffer: Where they were received. It is told if a view of them was handed out.

        Returns:
            The error with which the bookie refused the request, if any.

        Raises:
            ProtocolVersionMismatch: The response has an unknown code, which must end the connection.
        """
        op, code, _, _, _, at, size = row
        pending = self._singles.pop(self._wire.key(row), None)
        if pending is None or pending.done:
            return None
        request = pending.request
        try:
            refusal = request.refusal(self._wire, self._address, code) if code != OK else None
        except ProtocolVersionMismatch as mismatch:
            pending.fail(ProtocolVersionMismatch(f"{self._address}: {request}: {mismatch}"))
            raise
        if refusal is not None:
            pending.fail(refusal)
            return refusal
        if size > self._wire.frame_bytes_max:
            self._too_long(pending, size)
            return None
        if op == self._wire.batch_op:
            buffer.lend()
        try:
            pending.succeed(request.value(self._address, received[at : at + size]))
        except ReadError as malformed:
            pending.fail(malformed)
        return None

    def too_long(self, row: Row, size: int) -> bool:
        """Fail the request to which a response of `size` bytes, more than a frame, belongs; return whether there is
        one.
        """
        pending = self._singles.pop(self._wire.key(row), None)
        if pending is not None:
            self._too_long(pending, size)
        return pending is not None

    def _too_long(self, pending: P, size: int) -> None:
        what, limit = f"{self._address}: {pending.request}", f"frame_bytes_max={self._wire.frame_bytes_max}"
        pending.fail(ReadError(f"{what}: the response has {size} bytes, more than {limit}; raise that limit"))
