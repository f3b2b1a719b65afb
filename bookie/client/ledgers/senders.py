"""One index of a writer's ensemble: its bookie, and the sender to that bookie. Event loop."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bookie.client.contracts import AddSender, SenderOwner
from bookie.errors import BookKeeperError

__all__ = ["EnsembleSender", "Records", "SenderWatcher"]

Records = tuple[memoryview, NDArray[np.int64], NDArray[np.int64]]
"""What a sender sends: the memory of records, their offsets in it, and their entry ids."""


class SenderWatcher(Protocol):
    """The interface of the writer that its senders use."""

    @property
    def unforced(self) -> bool: ...
    def sender_answered(
        self, sender: "EnsembleSender", entries: NDArray[np.int64], codes: NDArray[np.int32]
    ) -> None: ...
    def sender_lost(self, sender: "EnsembleSender", error: BookKeeperError) -> None: ...
    def sender_has_room(self) -> None: ...
    def sender_reopened(self) -> None: ...


class EnsembleSender:
    """The `SenderOwner` of ensemble index `index`. After a connection is lost, the next `send` opens a new sender."""

    def __init__(
        self,
        watcher: SenderWatcher,
        index: int,
        bookie: str,
        open_sender: Callable[[str, SenderOwner], AddSender],
        unanswered_bytes_max: int,
    ) -> None:
        self.index = index
        self.bookie = bookie
        self.failed = False
        """The bookie is being replaced: nothing is sent, and the writer sends what was missed to the new bookie."""
        self._watcher = watcher
        self._open = open_sender
        self._sender: AddSender | None = None
        self._opened = False
        self._unanswered = 0
        self._unanswered_bytes = 0
        self._unanswered_bytes_max = unanswered_bytes_max
        self._retired = False

    @property
    def full(self) -> bool:
        """Whether the bookie holds the writer back: its connection is full, and it has too many bytes of unanswered
        adds.

        Other bookies may answer in the meantime, so one slow bookie does not stop a ledger at once, as long as memory
        is bounded.
        """
        if self._sender is None or self.failed or self._unanswered_bytes <= self._unanswered_bytes_max:
            return False
        return self._sender.full

    def send(self, records: Records) -> None:
        """Send a batch, unless the bookie is being replaced."""
        if self.failed:
            return
        if self._sender is None:
            self._sender = self._open(self.bookie, self)
            if self._opened:
                self._watcher.sender_reopened()
            self._opened = True
        self._unanswered += len(records[2])
        self._unanswered_bytes += len(records[0])
        self._sender.send(*records)

    def passed_over(self) -> None:
        """Note that entries go to the bookie on another connection from now on.

        When this sender is used again, the bookie may be another one than then, as after a lost connection.
        """
        self._opened = True

    def retire(self) -> None:
        """Close the sender and ignore all further responses."""
        self._retired = True
        if self._sender is not None:
            self._sender.close()
            self._sender = None

    def answered(self, entries: NDArray[np.int64], codes: NDArray[np.int32]) -> None:
        """Handle responses; see `SenderOwner`."""
        if not self._retired:
            # Responses do not contain the sizes of their entries, so the average size is assumed.
            self._unanswered_bytes -= self._unanswered_bytes * len(entries) // max(self._unanswered, 1)
            self._unanswered -= len(entries)
            self._watcher.sender_answered(self, entries, codes)

    def lost(self, error: BookKeeperError) -> None:
        """Handle the loss of the connection; see `SenderOwner`.

        It does not count as a failure if no add was unanswered, unless acknowledged entries are not synced yet.
        """
        unanswered, self._unanswered, self._unanswered_bytes = self._unanswered, 0, 0
        self._sender = None
        if (unanswered or self._watcher.unforced) and not self._retired:
            self._watcher.sender_lost(self, error)

    def on_room(self) -> None:
        """Handle that the sender is no longer full; see `SenderOwner`."""
        if not self._retired:
            self._watcher.sender_has_room()
