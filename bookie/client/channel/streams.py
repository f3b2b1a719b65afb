"""The streams of adds on one connection. No lock: the lock of the connection guards it.

A channel's stream has consecutive ids and a bounded number of them in flight, so its adds are in an `AddWindow`, an
array by id, and not in the hash table of links (`AddsInFlight`), which serves many senders with any ids: the array
takes half the time of the hash table for each add, and also measures latencies.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bookie._fast.client.add_window import AddWindow
from bookie.errors import IllegalOperation


class Streams:
    """The windows of a connection's streams; the adds of `wire.unanswered` that are sent in groups.

    In V2 one stream at a time may write a ledger, and `by_transaction` is False.
    """

    __slots__ = ("_by_transaction", "_left", "_written")

    def __init__(self, *, by_transaction: bool) -> None:
        self._by_transaction = by_transaction
        self._written: list[AddWindow] = []  # of streams that are being written
        self._left: list[AddWindow] = []  # V2: of streams that ended with unanswered adds

    def open(self, window: AddWindow) -> None:
        """Add a stream for which nothing must wait."""
        self._written.append(window)

    def drop(self, window: AddWindow) -> None:
        """End a stream, if it has not ended. In V2 its unanswered adds stay known."""
        if window not in self._written:
            return
        self._written.remove(window)
        if not self._by_transaction and window.base != window.end:
            self._left.append(window)

    def take(self, rows: NDArray[Any], count: int) -> int:
        """Take the responses to adds of streams out of the first `count` rows by setting their op to 0; return how many
        there were.
        """
        taken = 0
        for window in self._written:
            taken += window.acknowledge(rows, count)
        if self._left:
            for window in self._left:
                taken += window.acknowledge(rows, count)
            self._left = [window for window in self._left if window.base != window.end]
        return taken

    def knows_from(self, window: AddWindow) -> bool:
        """Return whether a V2 stream that has ended may still get a response to the entries of a new one.

        Raises IllegalOperation if another stream writes the ledger.
        """
        if self._by_transaction:
            return False
        ledger = window.ledger
        if any(other.ledger == ledger for other in self._written):
            raise IllegalOperation(f"ledger {ledger} has an add stream on this channel; finish it first")
        return any(left.ledger == ledger and left.end > window.base for left in self._left)

    def knows(self, ledger: int, entries: NDArray[np.int64], /) -> bool:
        """Return whether a stream that has ended may still get a response to one of these entries.

        Raises IllegalOperation if a stream writes one of them.
        """
        if not self._written and not self._left:
            return False
        lowest, highest = int(entries.min()), int(entries.max())
        if any(window.ledger == ledger and window.base <= highest for window in self._written):
            raise IllegalOperation(f"ledger {ledger}, entry {highest}: only its add stream may write it")
        return any(left.ledger == ledger and left.base <= highest and lowest < left.end for left in self._left)
