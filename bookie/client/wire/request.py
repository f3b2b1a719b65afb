"""A request: the key of its response, its frame, and how the response becomes a value. Values only."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie.client.entries.digest import Digest
from bookie.client.wire.flags import LAST_ENTRY
from bookie.errors import BookKeeperError, IncorrectParameter, ReadError, RequestTimeout

Key = tuple[int, ...]
"""What identifies the request to which a response belongs."""
Row = tuple[int, int, int, int, int, int, int]
"""A row of `framing_v2.RESPONSE`: op, code, ledger, entry, request id, position of the body, and size of the body."""

OK = 0
"""The code for success in both protocols."""


class Request:
    """A request, with everything that is needed to handle its response.

    `what` is a format string and its values, for error texts. `default` is the error class of the operation.
    `timeout_s` is the time limit in seconds, 0 for none. `codes` are codes of the protocol that have a special
    meaning for this request. `on_refusal` is called with the code of a refusal.
    """

    __slots__ = ("codes", "decode", "default", "frame", "key", "on_refusal", "timeout_s", "what")

    def __init__(
        self,
        key: Key,
        frame: bytes,
        what: tuple[Any, ...],
        default: type[BookKeeperError],
        decode: Callable[[memoryview], Any],
        timeout_s: float,
    ) -> None:
        self.key = key
        self.frame = frame
        self.what = what
        self.default = default
        self.decode = decode
        self.timeout_s = timeout_s
        self.codes: Mapping[int, type[BookKeeperError]] | None = None
        self.on_refusal: Callable[[int], None] | None = None

    def __str__(self) -> str:
        return str(self.what[0].format(*self.what[1:]))

    def fits(self, frame_bytes_max: int) -> None:
        """Raise IncorrectParameter if the frame is larger than the limit."""
        if len(self.frame) > frame_bytes_max:
            raise IncorrectParameter(f"{self}: its frame has {len(self.frame)} bytes; the limit is {frame_bytes_max}")

    def refusal(self, wire: "Wire", bookie: str, code: int) -> BookKeeperError | None:
        """Return the error for a response with this code, or None if it is the code for success.

        Raises ProtocolVersionMismatch for an unknown code, which must end the connection.
        """
        if code == OK:
            return None
        if self.on_refusal is not None:
            self.on_refusal(code)
        kind = self.codes.get(code) if self.codes else None
        kind = kind or wire.error_for(code, self.default)
        return None if kind is None else kind(f"{bookie}: {self}: answered with code {code}: {kind.__doc__}")

    def value(self, bookie: str, body: memoryview) -> Any:
        """Decode the body of a successful response. Raises ReadError if it is malformed."""
        try:
            return self.decode(body)
        except ValueError as malformed:
            raise ReadError(f"{bookie}: {self}: malformed answer: {malformed}") from malformed

    def late(self, bookie: str) -> RequestTimeout:
        """Return the error for a request that was not answered in time."""
        return RequestTimeout(f"{bookie}: {self}: no answer in time, but it may have been executed; try again")


def read_of(ledger: int, entry: int) -> tuple[Any, ...]:
    """Return `what` for a read."""
    if entry == LAST_ENTRY:
        return "read of ledger {}, last entry", ledger
    return "read of ledger {}, entry {}", ledger, entry


class Framer(Protocol):
    """Seals the entries of one ledger and makes the frames of their adds."""

    def __call__(
        self, first: int, lac: int, length: int, payloads: Buffer, offsets: NDArray[np.int64], /
    ) -> tuple[NDArray[np.uint8], int]:
        """Return the frames of entries first, first + 1, ..., and the transaction of the first one; the others count
        up from it.

        Payload k is payloads[offsets[k]:offsets[k + 1]]; `length` is the number of payload bytes in the ledger before
        `first`. Raises ValueError if a payload does not fit into a frame.
        """
        ...


class SenderNames(Protocol):
    """The values that each frame of a sender contains."""

    @property
    def ledger(self) -> int: ...
    @property
    def master_key(self) -> bytes: ...
    @property
    def flags(self) -> int: ...
    @property
    def deferred_sync(self) -> bool: ...


class Wire(Protocol):
    """One protocol on one connection: it makes the requests and interprets the responses."""

    @property
    def frame_bytes_max(self) -> int: ...
    @property
    def batch_op(self) -> int:
        """The operation whose responses are handed out as views of the receive buffer."""
        ...

    @property
    def by_transaction(self) -> bool:
        """Whether responses name a transaction. If not, a key can be reused only after its response has arrived."""
        ...

    def cut(self, buffer: Buffer, frame_bytes_max: int, rows: NDArray[Any], /) -> tuple[int, int, int]: ...
    def key(self, row: Row) -> Key:
        """Return the key of the request to which a response belongs."""
        ...

    def error_for(self, code: int, default: type[BookKeeperError]) -> type[BookKeeperError] | None:
        """Return the error class for a code, or None for success.

        Raises ProtocolVersionMismatch for an unknown code.
        """
        ...

    def stored(self, body: memoryview, /) -> bytes:
        """Return only the entry of the response to a read. Raises ValueError if it has none."""
        ...

    def add(
        self, ledger: int, entry: int, stored: Buffer, master_key: bytes, flags: int, timeout_s: float
    ) -> Request: ...
    def read(self, ledger: int, entry: int, flags: int, master_key: bytes | None, timeout_s: float) -> Request: ...
    def read_frames(self, ledger: int, entries: NDArray[np.int64]) -> tuple[NDArray[np.uint8], int]:
        """Return the frames of single reads, and the transaction of the first one; the others count up from it."""
        ...

    def batch_read(
        self,
        ledger: int,
        start: int,
        max_count: int,
        max_size: int,
        flags: int,
        master_key: bytes | None,
        timeout_s: float,
    ) -> Request: ...
    def auth(self, plugin: str, token: bytes, timeout_s: float) -> Request: ...
    def sender_frames(
        self, sender: SenderNames, records: Buffer, offsets: NDArray[np.int64], entries: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], int]:
        """Return the frames of adds of stored entries, and the transaction of the first one; the others count up from
        it. Raises ValueError.
        """
        ...

    def framer(self, digest: Digest, ledger: int, flags: int, *, deferred_sync: bool = False) -> Framer:
        """Return what makes the frames of a ledger's adds from payloads. Raises ValueError or OverflowError."""
        ...
