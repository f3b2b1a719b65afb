"""One TCP connection to one bookie: what the channels of both protocols share. Pipelined and thread-safe.

Requests and what their answers mean come from `bookie.client.wire`, as for the links of the ledger client. Only this
module knows sockets and threads: a compiled connection would take its place by offering `submit` for requests, and for
streams `send`, `drop_stream`, `changed` and `raise_if_broken`.

Any number of threads call; each call encodes and sends in its own thread, under a lock that keeps frames whole. One
receiving thread per channel reads answers, cuts them without the GIL and completes replies a table at a time.
"""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from typing_extensions import Buffer

from bookie._fast.client.add_window import AddWindow
from bookie.client.channel.reply import Reply, renewed
from bookie.client.wire.flags import MIB
from bookie.client.wire.receive import ReceiveBuffer
from bookie.client.wire.request import OK, Key, Request, Row
from bookie.client.wire.security import Link, Security, authenticate
from bookie.client.wire.v2 import WireV2
from bookie.client.wire.v3 import WireV3
from bookie.errors import (
    BookieUnavailable,
    BookKeeperError,
    ClientClosed,
    IncorrectParameter,
    ReadError,
    RequestTimeout,
)

TICK_S = 1.0


@dataclass(frozen=True, slots=True)
class Limits:
    """See `Connection`."""

    timeout_s: float
    frame_bytes_max: int
    outstanding_max: int


class Connection:
    """Made by `connect`, ended by `close` (or as a context manager).

    `timeout_s` bounds each request, `outstanding_max` the requests in flight (a full channel makes callers wait), and
    `frame_bytes_max` what is sent and accepted. Every call may raise BookieUnavailable, RequestTimeout, ClientClosed.
    """

    protocol: ClassVar[type[WireV2 | WireV3]]

    def __init__(self, link: Link, address: str, limits: Limits) -> None:
        self.address = address
        self.wire = self.protocol(limits.frame_bytes_max)
        self.timeout_s = limits.timeout_s
        self.frame_bytes_max = limits.frame_bytes_max
        self.changed = threading.Condition()
        self._outstanding_max = limits.outstanding_max
        self._link = link
        self._send_lock = threading.Lock()
        self._thread = threading.Thread(target=self._receive, name=f"bookie-channel-{address}", daemon=True)
        # Below: guarded by `changed`.
        self._pending: dict[Key, Reply[Any]] = {}
        self._windows: list[AddWindow] = []  # of streams with unanswered adds
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
        security: Security | None = None,
    ) -> Self:
        """Connect, encrypt and authenticate as `security` says, and start the receiving thread.

        BookieUnavailable when nobody answers at the address; SecurityError, UnauthorizedAccess.
        """
        if frame_bytes_max < 128:
            raise IncorrectParameter(f"frame_bytes_max is {frame_bytes_max}; give at least 128")
        address = f"{host}:{port}"
        try:
            sock = socket.create_connection((host, port), timeout=connect_timeout_s)
        except OSError as error:
            raise BookieUnavailable(f"{address}: cannot connect ({error}); is a bookie listening there?") from error
        security = security or Security()
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = security.secure(sock, host, address)
            sock.settimeout(None)  # from here on the kernel counts the time, for each direction by itself
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(timeout_s))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(min(timeout_s / 4, TICK_S)))
        except BaseException:
            sock.close()
            raise
        channel = cls(link, address, Limits(timeout_s, frame_bytes_max, outstanding_max))
        channel._thread.start()
        if security.auth is not None:
            try:
                authenticate(security.auth, host, address, channel.auth)
            except BaseException:
                channel.close()
                raise
        return channel

    def close(self) -> None:
        """Fail what is outstanding with ClientClosed, end the thread, free the socket. Idempotent."""
        self._break(ClientClosed(f"{self.address}: the channel was closed"))
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- requests -----------------------------------------------------------------------------------------------------

    def auth(self, plugin: str, token: bytes) -> tuple[str, bytes]:
        """Send a token of an authentication provider; the bookie's plugin name and token. UnauthorizedAccess."""
        answer: tuple[str, bytes] = self.submit(self.wire.auth(plugin, token, self.timeout_s)).result()
        return answer

    def _blocked(self, key: Key) -> bool:
        """Under `changed`: whether a request must wait. Raises when it must not be sent at all."""
        return key in self._pending or len(self._pending) >= self._outstanding_max

    def drop_stream(self, window: AddWindow) -> None:
        """The stream's writer has left; answers that are still to come mean nothing to anybody."""
        with self.changed:
            if window in self._windows:
                self._windows.remove(window)

    # --- the connection -----------------------------------------------------------------------------------------------

    def raise_if_broken(self) -> None:
        """Under `changed`: raise what ended the connection, if anything did."""
        if self._broken is not None:
            raise renewed(self._broken)

    def send(self, frames: Buffer) -> None:
        """Send whole frames. Raises nothing: a failure breaks the channel, and that fails everything outstanding."""
        try:
            with self._send_lock:
                self._link.sendall(frames)
        except BlockingIOError:
            self._break(BookieUnavailable(f"{self.address}: took no data for {self.timeout_s} s; is it overloaded?"))
        except OSError as error:
            self._break(BookieUnavailable(f"{self.address}: connection lost ({error}); reconnect and ask again"))

    def submit(self, request: Request) -> Reply[Any]:
        """Send a request, once its name is free and the channel is not full. IncorrectParameter, RequestTimeout."""
        request.fits(self.frame_bytes_max)
        now = time.monotonic()
        reply: Reply[Any] = Reply(self.changed, self.address, request, now + request.timeout_s)
        with self.changed:
            self._wait_while(lambda: self._blocked(request.key), now + self.timeout_s, request)
            self._pending[request.key] = reply
        frame, request.frame = request.frame, b""  # who keeps the reply does not keep what was sent
        self.send(frame)
        return reply

    def _wait_while(self, blocked: Callable[[], bool], deadline: float, what: object) -> None:
        """Under `changed`: until requests whose answers would be mistaken for ours, or too many, are answered."""
        while blocked():
            self.raise_if_broken()
            if not self.changed.wait(deadline - time.monotonic()):
                raise RequestTimeout(f"{self.address}: {what}: not sent, {len(self._pending)} requests are unanswered")
        self.raise_if_broken()

    def _receive(self) -> None:
        """The receiving thread: until the connection ends, for whatever reason."""
        buffer = ReceiveBuffer(self.frame_bytes_max, self.wire.cut)
        tick_s = min(self.timeout_s / 4, TICK_S)
        next_tick = time.monotonic() + tick_s
        try:
            while True:
                with contextlib.suppress(BlockingIOError):
                    if not buffer.receive(self._link):
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
            for window in self._windows:
                singles -= window.acknowledge(buffer.rows, count)
            if singles:
                for row in buffer.rows[:count].tolist():
                    if row[0] == self.wire.batch_op:
                        buffer.lend()
                    self._answer(row, received)
            self.changed.notify_all()
        return count

    def _answer(self, row: Row, received: memoryview) -> None:
        """Complete the reply of one answer; an answer that nobody waits for is dropped."""
        code, at, size = row[1], row[5], row[6]
        key = self.wire.key(row)
        reply = self._pending.get(key)
        if reply is None:
            return
        # An unknown code raises: then the reply fails with the connection.
        refusal = reply.request.refusal(self.wire, self.address, code) if code != OK else None
        del self._pending[key]
        if refusal is not None:
            reply.fail(refusal)
            return
        try:
            reply.succeed(reply.request.value(self.address, received[at : at + size]))
        except ReadError as malformed:
            reply.fail(malformed)

    def _expire(self) -> None:
        """Time out what is due."""
        now = time.monotonic()
        with self.changed:
            due = [key for key, reply in self._pending.items() if reply.deadline <= now]
            for key in due:
                self._pending[key].expire()
                if self.wire.by_transaction:
                    del self._pending[key]
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
            self._link.shutdown(socket.SHUT_RDWR)


def _timeval(seconds: float) -> bytes:
    whole = int(seconds)
    return struct.pack("ll", whole, int((seconds - whole) * 1e6))
