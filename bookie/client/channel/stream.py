"""A stream of adds to one ledger on one channel: any number of entries, with a bounded number of them unanswered.

One thread writes a stream (`append`, `finish`); its connection handles the responses. The memory of payloads is read
during `append` only.
"""

from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie._fast.client.add_window import AddWindow, percentile_ns
from bookie.client.channel.connection import Connection
from bookie.client.wire.request import Framer, Wire
from bookie.errors import IncorrectParameter, RequestTimeout, WriteError

CHUNK_BYTES = 1 << 20
"""The payload bytes that are passed to the socket in one piece."""


class AddStream:
    """A stream of adds. Open it with `add_stream` of a channel, and use it as a context manager.

    Each entry carries as LAC the last id up to which this bookie has confirmed all entries. That is right for a
    ledger on one bookie; a writer with a quorum passes the LAC of its quorum to `append`.

    Attributes:
        length: Payload bytes of the ledger, including all entries sent so far.
    """

    def __init__(
        self, connection: Connection, wire: Wire, window: AddWindow, framer: Framer, *, lac: int, length: int
    ) -> None:
        self._connection = connection
        self._wire = wire
        self._window = window
        self._framer = framer
        self._first = window.base
        self._lac = lac
        self.length = length

    @property
    def confirmed(self) -> int:
        """Every entry of the stream below this id is stored."""
        return self._window.confirmed

    @property
    def sent(self) -> int:
        """One past the id of the last entry that was sent."""
        return self._window.end

    def latency_ms(self, fraction: float) -> float:
        """Return a percentile of the time from sending an entry to its acknowledgement, with an error of at most 3 %.

        Args:
            fraction: The fraction of entries that were acknowledged faster, between 0 and 1.

        Returns:
            Milliseconds.
        """
        return percentile_ns(self._window.latency_counts, fraction) / 1e6

    def append(self, payloads: Buffer, offsets: NDArray[np.int64], *, lac: int | None = None) -> int:
        """Send many entries. The call waits while the window is full, but not for the responses.

        Args:
            payloads: The payloads one after the other.
            offsets: int64, shape (n + 1,): payload k is payloads[offsets[k]:offsets[k + 1]].
            lac: The LAC to store with the entries; None means the last entry that this bookie has confirmed.

        Returns:
            The id of the next entry.

        Raises:
            BookKeeperError: The error of an earlier entry that the bookie refused.
            IncorrectParameter: An entry does not fit into a frame.
            RequestTimeout: The window is full, and the bookie has answered no entry for as long as the time limit.
        """
        count = len(offsets) - 1
        start = 0
        while start < count:
            room = self._wait_for_room(count - start)
            by_bytes = int(np.searchsorted(offsets, offsets[start] + CHUNK_BYTES, side="right")) - 1
            stop = min(start + room, max(by_bytes, start + 1))
            self._send(payloads, offsets[start : stop + 1], self._confirmed_lac() if lac is None else lac)
            start = stop
        return self._window.end

    def finish(self) -> Self:
        """Wait until every entry that was sent is acknowledged.

        Raises:
            BookKeeperError: The error of an entry that the bookie refused.
        """
        self._wait(lambda: self._window.base == self._window.end, f"{self._window.end - self._window.base} answers")
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            self._connection.drop_stream(self._window)

    def _confirmed_lac(self) -> int:
        return self._window.confirmed - 1 if self._window.confirmed > self._first else self._lac

    def _wait_for_room(self, wanted: int) -> int:
        # Waking up for each free place would send frames one by one; a quarter of the window makes chunks worth
        # sending.
        least = min(wanted, max(1, self._window.capacity // 4))
        self._wait(lambda: self._window.room >= least, "room in the window")
        return self._window.room

    def _wait(self, ready: Callable[[], bool], what: str) -> None:
        """Wait until the stream is ready. Raise the error of a refused entry, or RequestTimeout if nothing is answered
        for as long as the time limit.
        """
        window, timeout_s = self._window, self._connection.timeout_s
        over = self._connection.wait(lambda: window.error_entry >= 0 or ready(), lambda: window.base, timeout_s)
        self._raise_refusal()
        if not over:
            raise RequestTimeout(f"{self._name(window.base)}: waited {timeout_s} s for {what}")

    def _raise_refusal(self) -> None:
        if self._window.error_entry < 0:
            return
        error = self._wire.error_for(self._window.error_code, WriteError) or WriteError
        raise error(
            f"{self._name(self._window.error_entry)}: refused with code {self._window.error_code}: {error.__doc__}"
        )

    def _name(self, entry: int) -> str:
        return f"{self._connection.address}: add of ledger {self._window.ledger}, entry {entry}"

    def _send(self, payloads: Buffer, offsets: NDArray[np.int64], lac: int) -> None:
        try:
            frames, transaction = self._framer(self._window.end, lac, self.length, payloads, offsets)
        except ValueError as error:
            raise IncorrectParameter(f"{self._name(self._window.end)} and on: {error}") from error
        self._connection.send_adds(self._window, frames.data, len(offsets) - 1, transaction)
        self.length += int(offsets[-1] - offsets[0])
