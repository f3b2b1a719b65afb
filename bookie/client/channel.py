"""One TCP connection to one bookie, V2: adds, reads, batch reads and fencing, pipelined and thread-safe.

Any number of threads call; each call encodes and sends in its own thread, under a lock that keeps frames whole. One
receiving thread per channel reads answers, cuts them without the GIL and completes replies a table at a time.
V2 answers name ledger and entry, not a request: a second request of the same name waits until the first is answered,
even when its caller has given up, so that no answer is ever taken for another one's.
"""

import contextlib
import itertools
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from enum import IntFlag
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie._fast import client_wire
from bookie._fast.add_window import AddWindow
from bookie.client.batch import EntryBatch
from bookie.client.digest import Digest
from bookie.client.receive import ReceiveBuffer
from bookie.client.reply import Reply, renewed
from bookie.client.stream import AddStream, framer
from bookie.errors import (
    BookieUnavailable,
    BookKeeperError,
    ClientClosed,
    IllegalOperation,
    IncorrectParameter,
    NoSuchEntry,
    ReadError,
    RequestTimeout,
    WriteError,
    error_from_v2,
)

T = TypeVar("T")

OP_ADD, OP_READ, OP_BATCH_READ = 1, 2, 7
LAST_ENTRY = -1
MIB = 1 << 20
TICK_S = 1.0


class Flags(IntFlag):
    """Request flags of V2."""

    NONE = 0
    FENCE = 1
    RECOVERY_ADD = 2
    HIGH_PRIORITY = 4


class Channel:
    """Made by `Channel.connect`, ended by `close` (or as a context manager).

    `timeout_s` bounds each request, `outstanding_max` the requests in flight (a full channel makes callers wait), and
    `frame_bytes_max` what is sent and accepted. Every call may raise BookieUnavailable, RequestTimeout, ClientClosed.
    """

    def __init__(
        self, sock: socket.socket, address: str, *, timeout_s: float, frame_bytes_max: int, outstanding_max: int
    ) -> None:
        self.address = address
        self.timeout_s = timeout_s
        self.frame_bytes_max = frame_bytes_max
        self.changed = threading.Condition()
        self._outstanding_max = outstanding_max
        self._sock = sock
        self._send_lock = threading.Lock()
        self._request_ids = itertools.count(1)
        self._thread = threading.Thread(target=self._receive, name=f"bookie-channel-{address}", daemon=True)
        # Below: guarded by `changed`.
        self._pending: dict[tuple[int, int, int], Reply[object]] = {}
        self._windows: list[AddWindow] = []  # of the streams being written
        self._leaving: list[AddWindow] = []  # of streams given up while adds were unanswered
        self._broken: BookKeeperError | None = None

    @classmethod
    def connect(
        cls,
        host: str,
        port: int,
        *,
        timeout_s: float = 10.0,
        connect_timeout_s: float = 5.0,
        frame_bytes_max: int = 5 * MIB,
        outstanding_max: int = 10_000,
    ) -> Self:
        """Connect and start the receiving thread. BookieUnavailable when nobody answers at the address."""
        if frame_bytes_max < 128:
            raise IncorrectParameter(f"frame_bytes_max is {frame_bytes_max}; give at least 128")
        address = f"{host}:{port}"
        try:
            sock = socket.create_connection((host, port), timeout=connect_timeout_s)
        except OSError as error:
            raise BookieUnavailable(f"{address}: cannot connect ({error}); is a bookie listening there?") from error
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(None)  # from here on the kernel counts the time, for each direction by itself
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(timeout_s))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(min(timeout_s / 4, TICK_S)))
        channel = cls(
            sock, address, timeout_s=timeout_s, frame_bytes_max=frame_bytes_max, outstanding_max=outstanding_max
        )
        channel._thread.start()
        return channel

    def close(self) -> None:
        """Fail what is outstanding with ClientClosed, end the thread, free the socket. Idempotent."""
        self._break(ClientClosed(f"{self.address}: the channel was closed"))
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._sock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- adds ---------------------------------------------------------------------------------------------------------

    def add(
        self, ledger: int, entry: int, payload: Buffer, *, digest: Digest, lac: int, length: int, flags: int = 0
    ) -> None:
        """Store an entry; returns when it is durable. `length`: payload bytes of the ledger including this entry.

        `flags`: RECOVERY_ADD is let through by a fence. LedgerFenced, UnauthorizedAccess, BookieReadOnly, WriteError, …
        """
        self.add_async(ledger, entry, payload, digest=digest, lac=lac, length=length, flags=flags).result()

    def add_async(
        self, ledger: int, entry: int, payload: Buffer, *, digest: Digest, lac: int, length: int, flags: int = 0
    ) -> Reply[None]:
        """`add` without waiting for the answer."""
        stored = digest.seal(ledger, entry, payload, lac=lac, length=length)
        return self.add_stored_async(stored, digest.master_key, flags=flags)

    def add_stored_async(self, stored: Buffer, master_key: bytes, *, flags: int = 0) -> Reply[None]:
        """Store bytes that are an entry already, header and digest included: a copy from another replica."""
        head = memoryview(stored)[:16]
        ledger, entry = struct.unpack(">qq", head) if len(head) == 16 else (0, 0)
        what = f"add of ledger {ledger}, entry {entry}"
        frame = client_wire.add_frame(master_key, stored, flags)
        if len(frame) > self.frame_bytes_max:
            raise IncorrectParameter(f"{what}: its frame has {len(frame)} bytes; the limit is {self.frame_bytes_max}")
        return self._submit((OP_ADD, ledger, entry), frame, what, WriteError, lambda _: None)

    def add_stream(
        self,
        ledger: int,
        first: int,
        *,
        digest: Digest,
        lac: int = -1,
        length: int = 0,
        outstanding: int = 10_000,
        flags: int = 0,
    ) -> AddStream:
        """A stream of adds from entry `first` on, at most `outstanding` unanswered. One stream per ledger at a time."""
        try:
            window = AddWindow(ledger, first, outstanding)
            frames = framer(digest, ledger, self.frame_bytes_max, flags)
        except ValueError as error:
            raise IncorrectParameter(f"add stream to ledger {ledger}: {error}") from error
        with self.changed:
            if any(other.ledger == ledger for other in self._windows):
                raise IllegalOperation(f"ledger {ledger} has an add stream on this channel; finish it first")
            deadline = time.monotonic() + self.timeout_s
            self._wait_while(lambda: self._has_adds(ledger, first), deadline, f"add stream to ledger {ledger}")
            self._windows.append(window)
        return AddStream(self, window, frames, lac=lac, length=length)

    def add_batch(
        self,
        ledger: int,
        first: int,
        payloads: Buffer,
        offsets: NDArray[np.int64],
        *,
        digest: Digest,
        lac: int = -1,
        length: int = 0,
        outstanding: int = 10_000,
    ) -> AddStream:
        """Store payloads[offsets[k]:offsets[k + 1]] as entry first + k, for every k; returns the finished stream."""
        with self.add_stream(ledger, first, digest=digest, lac=lac, length=length, outstanding=outstanding) as stream:
            stream.append(payloads, offsets)
        return stream

    def drop_stream(self, window: AddWindow) -> None:
        """The stream's writer has left. What it sent stays known until it is answered; nothing new takes its names."""
        with self.changed:
            if window not in self._windows:
                return
            self._windows.remove(window)
            if window.base != window.end:
                self._leaving.append(window)

    def _has_adds(self, ledger: int, first: int) -> bool:
        single = any(op == OP_ADD and of == ledger and entry >= first for op, of, entry in self._pending)
        return single or any(window.ledger == ledger and window.end > first for window in self._leaving)

    # --- reads --------------------------------------------------------------------------------------------------------

    def read(self, ledger: int, entry: int, *, flags: int = 0, master_key: bytes | None = None) -> bytes:
        """An entry as stored; `Digest.open` verifies it. NoSuchLedger, NoSuchEntry, ReadError, …"""
        return self.read_async(ledger, entry, flags=flags, master_key=master_key).result()

    def read_async(self, ledger: int, entry: int, *, flags: int = 0, master_key: bytes | None = None) -> Reply[bytes]:
        """`read` without waiting for the answer."""
        frame = client_wire.read_frame(ledger, entry, flags, master_key)
        what = f"read of ledger {ledger}, {'last entry' if entry == LAST_ENTRY else f'entry {entry}'}"
        return self._submit((OP_READ, ledger, entry), frame, what, ReadError, bytes)

    def read_last(self, ledger: int) -> bytes:
        """The entry with the highest id that the bookie holds, as stored. NoSuchLedger, NoSuchEntry, ReadError, …"""
        return self.read(ledger, LAST_ENTRY)

    def fence(self, ledger: int, master_key: bytes) -> bytes | None:
        """Refuse all further adds but recovery's; return the last entry as stored, None when there is none."""
        try:
            return self.read(ledger, LAST_ENTRY, flags=Flags.FENCE, master_key=master_key)
        except NoSuchEntry:
            return None

    def batch_read(
        self,
        ledger: int,
        start: int,
        max_count: int = 0,
        max_size: int = MIB,
        *,
        flags: int = 0,
        master_key: bytes | None = None,
    ) -> EntryBatch:
        """Entries from `start` on, one at least. `max_count` <= 0: no count limit; `max_size`: bytes of the answer."""
        return self.batch_read_async(ledger, start, max_count, max_size, flags=flags, master_key=master_key).result()

    def batch_read_async(
        self,
        ledger: int,
        start: int,
        max_count: int = 0,
        max_size: int = MIB,
        *,
        flags: int = 0,
        master_key: bytes | None = None,
    ) -> Reply[EntryBatch]:
        """`batch_read` without waiting for the answer."""
        request_id = next(self._request_ids)
        frame = client_wire.batch_read_frame(
            ledger, start, request_id, max_count, min(max_size, self.frame_bytes_max), flags, master_key
        )
        what = f"batch read of ledger {ledger} from entry {start}"
        return self._submit(
            (OP_BATCH_READ, request_id, 0), frame, what, ReadError, lambda body: _batch(ledger, start, body)
        )

    def batch_read_all(
        self, ledger: int, first: int, last: int, *, max_count: int = 1000, max_size: int = MIB, in_flight: int = 4
    ) -> Iterator[EntryBatch]:
        """All entries from `first` to `last`, in order, with `in_flight` batches on their way. NoSuchEntry at a gap.

        When answers bring fewer entries than asked for, what is missing is asked for again, and later requests are
        made that much smaller: `max_size` then decides the size of a batch.
        """
        if max_count < 1 or in_flight < 1:
            raise IncorrectParameter(f"max_count {max_count} and in_flight {in_flight} must be at least 1")
        waiting: deque[tuple[int, int, Reply[EntryBatch]]] = deque()
        ask = first

        def request(start: int, count: int) -> tuple[int, int, Reply[EntryBatch]]:
            return start, start + count, self.batch_read_async(ledger, start, count, max_size)

        while waiting or ask <= last:
            while ask <= last and len(waiting) < in_flight:
                waiting.append(request(ask, min(max_count, last + 1 - ask)))
                ask = waiting[-1][1]
            _, end, reply = waiting.popleft()
            batch = reply.result()
            if batch.end < end:
                max_count = len(batch)
                waiting.appendleft(request(batch.end, end - batch.end))
            yield batch

    # --- the connection -----------------------------------------------------------------------------------------------

    def raise_if_broken(self) -> None:
        """Under `changed`: raise what ended the connection, if anything did."""
        if self._broken is not None:
            raise renewed(self._broken)

    def send(self, frames: Buffer) -> None:
        """Send whole frames. Raises nothing: a failure breaks the channel, and that fails everything outstanding."""
        try:
            with self._send_lock:
                self._sock.sendall(frames)
        except BlockingIOError:
            self._break(BookieUnavailable(f"{self.address}: took no data for {self.timeout_s} s; is it overloaded?"))
        except OSError as error:
            self._break(BookieUnavailable(f"{self.address}: connection lost ({error}); reconnect and ask again"))

    def _submit(
        self,
        key: tuple[int, int, int],
        frame: bytes,
        what: str,
        default: type[BookKeeperError],
        decode: Callable[[memoryview], T],
    ) -> Reply[T]:
        deadline = time.monotonic() + self.timeout_s
        reply = Reply(self.changed, f"{self.address}: {what}", default, decode, deadline)
        with self.changed:
            self._wait_while(lambda: self._blocked(key), deadline, what)
            if key[0] == OP_ADD and any(w.ledger == key[1] and w.base <= key[2] for w in self._windows):
                raise IllegalOperation(f"{reply.what}: an add stream of this ledger is at these entries")
            self._pending[key] = reply  # type: ignore[assignment]  # the table holds replies of every type
        self.send(frame)
        return reply

    def _blocked(self, key: tuple[int, int, int]) -> bool:
        op, ledger, entry = key
        if key in self._pending or len(self._pending) >= self._outstanding_max:
            return True
        return op == OP_ADD and any(w.ledger == ledger and w.base <= entry < w.end for w in self._leaving)

    def _wait_while(self, blocked: Callable[[], bool], deadline: float, what: str) -> None:
        """Under `changed`: until requests whose answers would be mistaken for ours, or too many, are answered."""
        while blocked():
            self.raise_if_broken()
            if not self.changed.wait(deadline - time.monotonic()):
                raise RequestTimeout(f"{self.address}: {what}: not sent, {len(self._pending)} requests are unanswered")
        self.raise_if_broken()

    def _receive(self) -> None:
        """The receiving thread: until the connection ends, for whatever reason."""
        buffer = ReceiveBuffer(self.frame_bytes_max)
        tick_s = min(self.timeout_s / 4, TICK_S)
        next_tick = time.monotonic() + tick_s
        try:
            while True:
                with contextlib.suppress(BlockingIOError):
                    if not buffer.receive(self._sock):
                        raise ConnectionResetError("the bookie closed it")
                    while self._complete(buffer):
                        pass
                if time.monotonic() >= next_tick:
                    next_tick = time.monotonic() + tick_s
                    self._expire()
        except OSError as error:
            self._break(BookieUnavailable(f"{self.address}: connection lost ({error}); reconnect and ask again"))
        except ValueError as error:
            self._break(BookieUnavailable(f"{self.address}: connection given up: {error}"))
        except BookKeeperError as error:
            self._break(error)

    def _complete(self, buffer: ReceiveBuffer) -> int:
        count, received = buffer.cut()
        if not count:
            return 0
        with self.changed:
            singles = count
            for window in (*self._windows, *self._leaving):
                singles -= window.acknowledge(buffer.rows, count)
            if self._leaving:
                self._leaving = [window for window in self._leaving if window.base != window.end]
            if singles:
                for row in buffer.rows[:count].tolist():
                    if row[0] == OP_BATCH_READ:
                        buffer.lend()
                    self._answer(row, received)
            self.changed.notify_all()
        return count

    def _answer(self, row: tuple[int, int, int, int, int, int, int], received: memoryview) -> None:
        """Complete the reply of one answer; an answer that nobody waits for is dropped."""
        op, code, ledger, entry, request_id, at, size = row
        key = (op, request_id, 0) if op == OP_BATCH_READ else (op, ledger, entry)
        reply = self._pending.get(key)
        if reply is None:
            return
        error = error_from_v2(code, reply.default)  # raises for an unknown code: the reply fails with the connection
        del self._pending[key]
        if error is not None:
            reply.fail(error(f"{reply.what}: answered with code {code}: {error.__doc__}"))
            return
        try:
            reply.succeed(reply.decode(received[at : at + size]))
        except ValueError as malformed:
            reply.fail(ReadError(f"{reply.what}: malformed answer: {malformed}"))

    def _expire(self) -> None:
        """Time out what is due. The oldest request comes first, and its place stays taken until its answer arrives."""
        now = time.monotonic()
        with self.changed:
            for reply in self._pending.values():
                if reply.deadline > now:
                    break
                reply.expire()
            self.changed.notify_all()

    def _break(self, error: BookKeeperError) -> None:
        """The connection is over: the first reason counts, and everything outstanding fails with it, once."""
        with self.changed:
            if self._broken is not None:
                return
            self._broken = error
            for reply in self._pending.values():
                reply.fail(renewed(error))
            self._pending.clear()
            self.changed.notify_all()
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)


def _batch(ledger: int, start: int, body: memoryview) -> EntryBatch:
    batch = EntryBatch(ledger, start, body)
    if not len(batch):
        raise ValueError("a batch without entries")
    return batch


def _timeval(seconds: float) -> bytes:
    whole = int(seconds)
    return struct.pack("ll", whole, int((seconds - whole) * 1e6))
