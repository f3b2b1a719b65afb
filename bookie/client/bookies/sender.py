"""The adds of one ledger on one connection: it sends what its owner passes, and reports the responses to the owner.

It runs on the event loop. A sender keeps bytes only where V2 cannot send them yet, because an earlier add of the same
entry is unanswered.
"""

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie.client.contracts import SenderOwner
from bookie.client.entries.batch import LENGTH_PREFIX
from bookie.errors import BookKeeperError, IncorrectParameter

if TYPE_CHECKING:
    from bookie.client.bookies.link import Link

Chunk = tuple[bytes, NDArray[np.int64], NDArray[np.int64], float]
"""Records, offsets, entry ids, and the time of the timeout."""


class Sender:
    """The implementation of `contracts.AddSender`. `Link.sender` makes it; `number` counts from 1 on its connection."""

    __slots__ = ("_link", "deferred_sync", "flags", "held", "ledger", "master_key", "number", "owner", "wants_room")

    def __init__(
        self,
        link: "Link[Any]",
        number: int,
        ledger: int,
        master_key: bytes,
        owner: SenderOwner,
        *,
        flags: int,
        deferred_sync: bool,
    ) -> None:
        self._link = link
        self.number = number
        self.ledger = ledger
        self.master_key = master_key
        self.owner: SenderOwner | None = owner
        self.flags = flags
        self.deferred_sync = deferred_sync
        self.held: deque[Chunk] = deque()
        self.wants_room = False

    def send(self, records: Buffer, offsets: NDArray[np.int64], entries: NDArray[np.int64]) -> None:
        """Send entries; see `contracts.AddSender`. Raises IncorrectParameter, and sends none, if one does not fit
        into a frame.
        """
        if self.owner is None:
            return
        try:
            self._link.send_adds(self, records, offsets, entries)
        except ValueError as error:
            largest = int(np.diff(offsets).argmax())
            raise IncorrectParameter(
                f"{self}, entries {entries.min()} to {entries.max()}, of which entry {entries[largest]} is the largest"
                f" with {offsets[largest + 1] - offsets[largest] - LENGTH_PREFIX} bytes: {error}; raise"
                " nettyMaxFrameSizeBytes of this client and of the bookies"
            ) from error

    def __str__(self) -> str:
        return f"adds of ledger {self.ledger}"

    @property
    def full(self) -> bool:
        """Whether more output is queued for the socket than its limit."""
        self.wants_room = self._link.full
        return self.wants_room

    def close(self) -> None:
        """Discard the responses to all adds that were sent. Idempotent."""
        if self.owner is not None:
            self.owner = None
            self.held.clear()
            self._link.leave(self)

    def end(self, error: BookKeeperError) -> None:
        """Close the sender, and tell its owner that nothing more will be answered."""
        owner = self.owner
        if owner is not None:
            self.close()
            owner.lost(error)

    def room(self) -> None:
        """Tell the owner that the link accepts more output, if it was told before that the link is full."""
        if self.wants_room and self.owner is not None:
            self.wants_room = False
            self.owner.on_room()
