"""The V2 protocol: requests as frames; responses are identified by ledger and entry. Values only; any thread."""

import itertools
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie._fast.client import framing_v2, single_reads
from bookie.client.entries.batch import StoredBatch
from bookie.client.entries.digest import Digest
from bookie.client.wire.answers_v3 import ReadAnswer
from bookie.client.wire.flags import LAST_ENTRY
from bookie.client.wire.messages import parsed
from bookie.client.wire.request import Framer, Key, Request, Row, SenderNames, read_of
from bookie.errors import (
    BookKeeperError,
    IllegalOperation,
    ReadError,
    UnauthorizedAccess,
    WriteError,
    error_from_v2,
)
from bookie.pb.wire_pb2 import AuthMessage

OP_ADD, OP_READ, OP_AUTH, OP_BATCH_READ = 1, 2, 3, 7
ENTRY_ID = struct.Struct(">q")
NOT_SERVED: dict[int, type[BookKeeperError]] = {100: IllegalOperation}
"""The meaning of EBADREQ for a batch read: the bookie does not know the operation."""


class WireV2:
    """The V2 protocol on one connection.

    Responses name the ledger and the entry, not the request, so a second request for the same entry must wait until
    the first one is answered.
    """

    cut = staticmethod(framing_v2.cut)
    batch_op = OP_BATCH_READ
    by_transaction = False
    add_overhead_max = 24
    """The bytes of an add besides its entry, and the length words of both."""

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        self._request_ids = itertools.count(1)

    def key(self, row: Row) -> Key:
        """Return the key of the request to which a response belongs."""
        op, _, ledger, entry, request_id, *_ = row
        return (op, request_id, 0) if op == OP_BATCH_READ else (op, ledger, entry)

    def error_for(self, code: int, default: type[BookKeeperError]) -> type[BookKeeperError] | None:
        """Return the error class for a return code, or None for success."""
        return error_from_v2(code, default)

    def stored(self, body: memoryview, /) -> bytes:
        """Return the entry in the response to a READ."""
        return bytes(body)

    def sender_frames(
        self, sender: SenderNames, records: Buffer, offsets: NDArray[np.int64], _entries: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], int]:
        """Return the frames of ADDs of stored entries, and 0, since V2 has no transactions. Raises ValueError."""
        return framing_v2.stored_adds(sender.master_key, records, offsets, self.frame_bytes_max, sender.flags), 0

    def framer(self, digest: Digest, ledger: int, flags: int, *, deferred_sync: bool = False) -> Framer:
        """Return what makes the frames of a ledger's ADDs from payloads. V2 has no deferred sync. Raises ValueError."""
        if deferred_sync:
            raise ValueError("deferred sync needs V3")
        framer = framing_v2.AddFramer(digest.digester, digest.master_key, ledger, self.frame_bytes_max, flags=flags)
        return lambda *entries: (framer.build(*entries), 0)

    def add(self, ledger: int, entry: int, stored: Buffer, master_key: bytes, flags: int, timeout_s: float) -> Request:
        """Return an ADD request."""
        frame = framing_v2.add_frame(master_key, stored, flags)
        what = ("add of ledger {}, entry {}", ledger, entry)
        return Request((OP_ADD, ledger, entry), frame, what, WriteError, _nothing, timeout_s)

    def read(self, ledger: int, entry: int, flags: int, master_key: bytes | None, timeout_s: float) -> Request:
        """Return a READ request."""

        def decode(body: memoryview) -> ReadAnswer:
            if len(body) < 2 * ENTRY_ID.size:
                raise ValueError(f"its entry has only {len(body)} bytes")
            found = ENTRY_ID.unpack_from(body, ENTRY_ID.size)[0] if entry == LAST_ENTRY else entry
            return ReadAnswer(found, bytes(body), None, None)

        frame = framing_v2.read_frame(ledger, entry, flags, master_key)
        return Request((OP_READ, ledger, entry), frame, read_of(ledger, entry), ReadError, decode, timeout_s)

    def read_frames(self, ledger: int, entries: NDArray[np.int64]) -> tuple[NDArray[np.uint8], int]:
        """Return the frames of READs without flags, and 0, since V2 has no transactions."""
        return single_reads.requests_v2(ledger, entries), 0

    def batch_read(
        self,
        ledger: int,
        start: int,
        max_count: int,
        max_size: int,
        flags: int,
        master_key: bytes | None,
        timeout_s: float,
    ) -> Request:
        """Return a BATCH_READ request."""
        number = next(self._request_ids)
        frame = framing_v2.batch_read_frame(ledger, start, number, max_count, max_size, flags, master_key)
        what = ("batch read of ledger {} from entry {}", ledger, start)
        decode = lambda run: StoredBatch(ledger, start, run)  # noqa: E731
        request = Request((OP_BATCH_READ, number, 0), frame, what, ReadError, decode, timeout_s)
        request.codes = NOT_SERVED
        return request

    def auth(self, plugin: str, token: bytes, timeout_s: float) -> Request:
        """Return an AUTH request."""
        message = AuthMessage(authPluginName=plugin, payload=token).SerializeToString()
        what = ("authentication by {}", plugin)
        return Request((OP_AUTH, 0, 0), framing_v2.auth_frame(message), what, UnauthorizedAccess, _token, timeout_s)


def _nothing(_: Any) -> None:
    """Decode a response that has only a code."""


def _token(body: memoryview) -> tuple[str, bytes]:
    answer = parsed(AuthMessage, body)
    return answer.authPluginName, answer.payload
