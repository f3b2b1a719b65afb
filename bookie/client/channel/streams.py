"""The streams of adds on one connection, by number. No lock: the lock of the connection guards it.

Their adds in flight are in a `StreamAdds`, where each stream is a sender.
"""

import itertools

from bookie._fast.client.add_window import AddWindow
from bookie._fast.client.stream_adds import StreamAdds
from bookie.client.wire.request import Key
from bookie.client.wire.unanswered import ADD
from bookie.errors import IllegalOperation


class Streams:
    """The streams that are being written. In V2 one stream at a time may write a ledger.

    Attributes:
        adds: Their adds in flight.
    """

    __slots__ = ("_numbers", "_one_each", "_windows", "adds")

    def __init__(self, *, by_transaction: bool) -> None:
        self.adds = StreamAdds(by_transaction=by_transaction)
        self._one_each = not by_transaction
        self._numbers = itertools.count(1)
        self._windows: list[AddWindow] = []

    def open(self, ledger: int, first: int, capacity: int) -> AddWindow:
        """Add a stream for which nothing must wait. Raises ValueError if an argument is invalid."""
        window = AddWindow(next(self._numbers), ledger, first, capacity)
        self._windows.append(window)
        self.adds.open(window)
        return window

    def drop(self, window: AddWindow) -> None:
        """End a stream, if it has not ended. In V2 its unanswered adds stay in the table, and their keys in use."""
        if window in self._windows:
            self._windows.remove(window)
            self.adds.leave(window.sender)

    # --- one writer for each ledger -----------------------------------------------------------------------------------

    def check_add(self, key: Key) -> None:
        """Raise IllegalOperation if a request is a V2 add of an entry that a stream writes."""
        if self._one_each and self._windows and key[0] == ADD:
            _, ledger, entry = key
            if any(window.ledger == ledger and window.base <= entry for window in self._windows):
                raise IllegalOperation(f"ledger {ledger}, entry {entry}: only its add stream may write it")

    def check_stream(self, ledger: int) -> None:
        """Raise IllegalOperation if a stream writes the ledger, and the protocol is V2."""
        if self._one_each and any(window.ledger == ledger for window in self._windows):
            raise IllegalOperation(f"ledger {ledger} has an add stream on this channel; finish it first")
