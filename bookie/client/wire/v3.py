"""The V3 protocol: requests as frames; responses are identified by transaction ids. Values only; any thread."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie._fast.client import framing_v3, single_reads
from bookie.client.entries.digest import Digest
from bookie.client.wire import answers_v3 as answers
from bookie.client.wire import requests_v3 as requests
from bookie.client.wire.flags import LAST_ENTRY, Flags
from bookie.client.wire.messages import framed
from bookie.client.wire.request import Framer, Key, Request, Row, SenderNames, read_of
from bookie.errors import (
    BookKeeperError,
    IllegalOperation,
    IncorrectParameter,
    ReadError,
    UnauthorizedAccess,
    WriteError,
    error_from_v3,
)
from bookie.pb import wire_pb2 as pb

STORED_BYTES_MIN = 24
ENTRY_AT = slice(8, 16)
NOT_SERVED: dict[int, type[BookKeeperError]] = {int(pb.EBADREQ): IllegalOperation}
"""The meaning of EBADREQ for an extension: the bookie does not know the operation."""


class WireV3:
    """The V3 protocol on one connection, on which each transaction id is used only once. Any thread."""

    cut = staticmethod(framing_v3.cut)
    batch_op: int = pb.BATCH_READ_ENTRY
    by_transaction = True
    add_overhead_max = 79
    """The most bytes of an add besides its entry, and the length words of both: each id with all its bytes."""

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        self._used = 0
        self._lock = threading.Lock()

    def transactions(self, count: int) -> int:
        """Reserve `count` transaction ids, and return the first one."""
        with self._lock:
            first = self._used + 1
            self._used += count
        return first

    def key(self, row: Row) -> Key:
        """Return the key of the request to which a response belongs."""
        return row[4], row[0]

    def error_for(self, code: int, default: type[BookKeeperError]) -> type[BookKeeperError] | None:
        """Return the error class for a status, or None for success."""
        return error_from_v3(code, default)

    def stored(self, body: memoryview, /) -> bytes:
        """Return the entry in the response to a READ_ENTRY. Raises ValueError if it has none."""
        return answers.entry(body)

    def sender_frames(
        self, sender: SenderNames, records: Buffer, offsets: NDArray[np.int64], entries: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], int]:
        """Return the frames of ADD_ENTRYs of stored entries, and the first transaction id; the others count up from
        it.

        Raises ValueError.
        """
        first = self.transactions(len(entries))
        frames = framing_v3.stored_adds(
            sender.ledger,
            sender.master_key,
            records,
            offsets,
            entries,
            first,
            self.frame_bytes_max,
            priority=requests.HIGH_PRIORITY if sender.flags & Flags.HIGH_PRIORITY else 0,
            write_flags=requests.DEFERRED_SYNC if sender.deferred_sync else 0,
            recovery=bool(sender.flags & Flags.RECOVERY_ADD),
        )
        return frames, first

    def framer(self, digest: Digest, ledger: int, flags: int, *, deferred_sync: bool = False) -> Framer:
        """Return what makes the frames of a ledger's ADD_ENTRYs from payloads. Raises ValueError or OverflowError."""
        framer = framing_v3.AddFramerV3(
            digest.digester,
            digest.master_key,
            ledger,
            self.frame_bytes_max,
            priority=requests.HIGH_PRIORITY if flags & Flags.HIGH_PRIORITY else 0,
            write_flags=requests.DEFERRED_SYNC if deferred_sync else 0,
            recovery=bool(flags & Flags.RECOVERY_ADD),
        )

        def frames(
            first: int, lac: int, length: int, payloads: Buffer, offsets: NDArray[np.int64]
        ) -> tuple[NDArray[np.uint8], int]:
            transaction = self.transactions(len(offsets) - 1)
            return framer.build(first, lac, length, payloads, offsets, transaction), transaction

        return frames

    def add(
        self,
        ledger: int,
        entry: int,
        stored: Buffer,
        master_key: bytes,
        flags: int,
        timeout_s: float,
        *,
        deferred_sync: bool = False,
    ) -> Request:
        """Return an ADD_ENTRY request. With `deferred_sync` the entry is acknowledged when written, and durable after
        a force.
        """
        body = bytes(stored)
        if len(body) < STORED_BYTES_MIN:
            raise IncorrectParameter(
                f"ledger {ledger}, entry {entry}: an entry as stored has at least {STORED_BYTES_MIN} bytes,"
                f" this one has {len(body)}"
            )
        message = requests.add(self.transactions(1), body, master_key, flags, deferred_sync=deferred_sync)
        what = ("add of ledger {}, entry {}", ledger, entry)
        return self._request(message, what, WriteError, answers.nothing, timeout_s)

    def read(self, ledger: int, entry: int, flags: int, master_key: bytes | None, timeout_s: float) -> Request:
        """Return a READ_ENTRY request."""
        message = requests.read(self.transactions(1), ledger, entry, flags, master_key)
        decode = answers.read if entry != LAST_ENTRY else _last
        return self._request(message, read_of(ledger, entry), ReadError, decode, timeout_s)

    def read_frames(self, ledger: int, entries: NDArray[np.int64]) -> tuple[NDArray[np.uint8], int]:
        """Return the frames of READ_ENTRYs without flags, and the first transaction id; the others count up from it."""
        first = self.transactions(len(entries))
        return single_reads.requests_v3(ledger, entries, first), first

    def wait_for_lac(self, ledger: int, previous_lac: int, timeout_ms: int, timeout_s: float) -> Request:
        """Return a READ_ENTRY request that waits at the bookie; its time limit is `timeout_s` plus `timeout_ms`."""
        message = requests.wait_for_lac(self.transactions(1), ledger, previous_lac, timeout_ms)
        what = ("wait for the LAC of ledger {} to pass {}", ledger, previous_lac)
        return self._request(message, what, ReadError, answers.read, timeout_s and timeout_s + timeout_ms / 1000)

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
        """Return a request of the extension BATCH_READ_ENTRY."""
        message = requests.batch_read(self.transactions(1), ledger, start, max_count, max_size, flags, master_key)
        what = ("batch read of ledger {} from entry {}", ledger, start)
        request = self._request(message, what, ReadError, answers.batch(ledger, start), timeout_s)
        request.codes = NOT_SERVED
        return request

    def read_lac(self, ledger: int, timeout_s: float) -> Request:
        what = ("read of the LAC of ledger {}", ledger)
        return self._request(requests.read_lac(self.transactions(1), ledger), what, ReadError, answers.lacs, timeout_s)

    def write_lac(self, ledger: int, lac: int, packet: bytes, master_key: bytes, timeout_s: float) -> Request:
        message = requests.write_lac(self.transactions(1), ledger, lac, packet, master_key)
        what = ("write of LAC {} of ledger {}", lac, ledger)
        return self._request(message, what, WriteError, answers.nothing, timeout_s)

    def force(self, ledger: int, timeout_s: float) -> Request:
        what = ("force of ledger {}", ledger)
        return self._request(requests.force(self.transactions(1), ledger), what, WriteError, answers.nothing, timeout_s)

    def write_close(self, ledger: int, master_key: bytes, timeout_s: float) -> Request:
        """Return a request of the extension WRITE_CLOSE."""
        message = requests.write_close(self.transactions(1), ledger, master_key)
        return self._request(message, ("write close of ledger {}", ledger), WriteError, answers.nothing, timeout_s)

    def list_entries(self, ledger: int, timeout_s: float) -> Request:
        message = requests.list_entries(self.transactions(1), ledger)
        return self._request(message, ("list of entries of ledger {}", ledger), ReadError, answers.available, timeout_s)

    def bookie_info(self, timeout_s: float, *, load: bool = False) -> Request:
        message = requests.bookie_info(self.transactions(1), load=load)
        return self._request(message, ("bookie info",), ReadError, answers.bookie_info, timeout_s)

    def auth(self, plugin: str, token: bytes, timeout_s: float) -> Request:
        message = requests.auth(self.transactions(1), plugin, token)
        what = ("authentication by {}", plugin)
        return self._request(message, what, UnauthorizedAccess, answers.auth, timeout_s)

    def _request(
        self,
        message: pb.Request,
        what: tuple[Any, ...],
        default: type[BookKeeperError],
        decode: Callable[[memoryview], Any],
        timeout_s: float,
    ) -> Request:
        return Request(
            (message.header.txnId, message.header.operation), framed(message), what, default, decode, timeout_s
        )


def _last(body: memoryview) -> answers.ReadAnswer:
    """Replace the entry id -1, which the response repeats from the request, by the id in the entry itself."""
    answer = answers.read(body)
    if answer.stored is None or len(answer.stored) < ENTRY_AT.stop:
        return answer
    return answer._replace(entry=int.from_bytes(answer.stored[ENTRY_AT], "big", signed=True))
