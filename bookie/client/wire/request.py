"""A request on its way: what identifies its answer, what goes out, and how the answer becomes a value. Values only."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie.client.wire.flags import LAST_ENTRY
from bookie.errors import BookKeeperError, IncorrectParameter, ReadError, RequestTimeout

Key = tuple[int, ...]
"""What an answer names: the request that it belongs to."""
Row = tuple[int, int, int, int, int, int, int]
"""Of `framing_v2.RESPONSE`: op, code, ledger, entry, request id, and the body's place and size."""

OK = 0
"""The code of an answer that granted its request, in both protocols."""


class Request:
    """`what`: a format and its values, for errors. `default`: the operation's own error. `timeout_s`: 0 is for ever.

    `codes`: what codes of the protocol mean here and nowhere else.
    """

    __slots__ = ("answer", "codes", "decode", "default", "due", "frame", "key", "timeout_s", "what")

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
        self.due = 0.0
        self.answer: asyncio.Future[Any]

    def __str__(self) -> str:
        return str(self.what[0].format(*self.what[1:]))

    def fits(self, frame_bytes_max: int) -> None:
        """Return if its frame is no longer than this. IncorrectParameter."""
        if len(self.frame) > frame_bytes_max:
            raise IncorrectParameter(f"{self}: its frame has {len(self.frame)} bytes; the limit is {frame_bytes_max}")

    def refusal(self, wire: "Wire", bookie: str, code: int) -> BookKeeperError | None:
        """The error that an answer with this code means, None when it was granted.

        ProtocolVersionMismatch for a code of no meaning, which is the connection's end.
        """
        if code == OK:
            return None
        kind = self.codes.get(code) if self.codes else None
        kind = kind or wire.error_for(code, self.default)
        return None if kind is None else kind(f"{bookie}: {self}: answered with code {code}: {kind.__doc__}")

    def value(self, bookie: str, body: memoryview) -> Any:
        """What the body of an answer that granted it says. ReadError when it is malformed."""
        try:
            return self.decode(body)
        except ValueError as malformed:
            raise ReadError(f"{bookie}: {self}: malformed answer: {malformed}") from malformed

    def late(self, bookie: str) -> RequestTimeout:
        """The error that it ends with when its time is up."""
        return RequestTimeout(f"{bookie}: {self}: no answer in time, but it may have been done; ask again")

    def fail(self, error: BookKeeperError) -> None:
        """The first end counts."""
        if not self.answer.done():
            self.answer.set_exception(error)


def read_of(ledger: int, entry: int) -> tuple[Any, ...]:
    """`what` of a read."""
    if entry == LAST_ENTRY:
        return "read of ledger {}, last entry", ledger
    return "read of ledger {}, entry {}", ledger, entry


class LaneNames(Protocol):
    """What goes into each frame of a lane."""

    @property
    def ledger(self) -> int: ...
    @property
    def master_key(self) -> bytes: ...
    @property
    def flags(self) -> int: ...
    @property
    def deferred_sync(self) -> bool: ...


class Wire(Protocol):
    """One protocol on one connection; it also makes the requests."""

    @property
    def frame_bytes_max(self) -> int: ...
    @property
    def batch_op(self) -> int:
        """Its answers are views of the receive buffer."""
        ...

    @property
    def by_transaction(self) -> bool:
        """False: a name can be used again only after the answer to it."""
        ...

    def cut(self, buffer: Buffer, frame_bytes_max: int, rows: NDArray[Any], /) -> tuple[int, int, int]: ...
    def key(self, row: Row) -> Key:
        """Which request an answer belongs to."""
        ...

    def error_for(self, code: int, default: type[BookKeeperError]) -> type[BookKeeperError] | None:
        """The class that an answer's code means, None for OK. ProtocolVersionMismatch for a code of no meaning."""
        ...

    def stored(self, body: memoryview, /) -> bytes:
        """The entry in an answer to a read, and nothing else of it. ValueError when there is none."""
        ...

    def add(
        self, ledger: int, entry: int, stored: Buffer, master_key: bytes, flags: int, timeout_s: float
    ) -> Request: ...
    def read(self, ledger: int, entry: int, flags: int, master_key: bytes | None, timeout_s: float) -> Request: ...
    def read_frames(self, ledger: int, entries: NDArray[np.int64]) -> tuple[NDArray[np.uint8], int]:
        """Of single reads, and the transaction of the first; they count up."""
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
    def lane_frames(
        self, lane: LaneNames, records: Buffer, offsets: NDArray[np.int64], entries: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], int]: ...
