"""One TCP connection to one bookie: what the channels of both protocols share. Pipelined and thread-safe.

Like the links of the ledger client, it takes requests and the meaning of responses from `bookie.client.wire`. Only
this module knows sockets and threads: a compiled connection could replace it if it offered `submit` for requests, and
`send`, `drop_stream`, `changed` and `raise_if_broken` for streams.

Any number of threads may call. Each call encodes and sends on its own thread, under a lock that keeps frames whole. One
receiving thread per channel reads responses, splits them without the GIL, and completes the replies in groups.
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
from bookie.client.wire.security import Security, Transport, authenticate
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
    """The limits of a connection; `Connection.connect` describes them."""

    timeout_s: float
    frame_bytes_max: int
    outstanding_max: int


class Connection:
    """A connection to one bookie. Open it with `connect`; end it with `close`, or use it as a context manager.

    Every call may raise BookieUnavailable, RequestTimeout or ClientClosed besides the errors that it documents.
    """

    protocol: ClassVar[type[WireV2 | WireV3]]

    def __init__(self, link: Transport, address: str, limits: Limits) -> None:
        self.address = address
        self.wire = self.protocol(limits.frame_bytes_max)
        self.timeout_s = limits.timeout_s
        self.frame_bytes_max = limits.frame_bytes_max
        self.changed = threading.Condition()
        self._outstanding_max = limits.outstanding_max
        self._link = link
        self._send_lock = threading.Lock()
        self._thread = threading.Thread(target=self._receive, name=f"bookie-channel-{address}", daemon=True)
        # The fields below are guarded by `changed`.
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

        Args:
            host: The host name or address of the bookie.
            port: The port of the bookie.
            timeout_s: The time limit of each request, in seconds.
            connect_timeout_s: The time limit for establishing the connection, in seconds.
            frame_bytes_max: The largest frame that is sent or accepted, in bytes, at least 128.
            outstanding_max: The highest number of unanswered requests; when it is reached, callers wait.
            security: How to encrypt and authenticate; None means neither.

        Returns:
            The open channel.

        Raises:
            BookieUnavailable: Nothing accepts connections at the address.
            SecurityError: The TLS handshake failed, or the bookie does not support TLS.
            UnauthorizedAccess: The bookie or the client rejected the other's authentication.
            IncorrectParameter: `frame_bytes_max` is too small.
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
            sock.settimeout(None)  # from here on the kernel enforces a time limit for each direction
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
        """Fail all outstanding requests with ClientClosed, end the receiving thread, and close the socket.

        Further calls do nothing.
        """
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
        """Send a token of an authentication provider to the bookie.

        Args:
            plugin: The plugin name of the provider.
            token: The token.

        Returns:
            The bookie's plugin name and its token.

        Raises:
            UnauthorizedAccess: The bookie rejected the token.
        """
        answer: tuple[str, bytes] = self.submit(self.wire.auth(plugin, token, self.timeout_s)).result()
        return answer

    def _blocked(self, key: Key) -> bool:
        """Return whether a request must wait, or raise if it must not be sent at all. The caller holds `changed`."""
        return key in self._pending or len(self._pending) >= self._outstanding_max

    def drop_stream(self, window: AddWindow) -> None:
        """Forget a stream whose writer has left; responses to it that still arrive are ignored."""
        with self.changed:
            if window in self._windows:
                self._windows.remove(window)

    # --- the connection -----------------------------------------------------------------------------------------------

    def raise_if_broken(self) -> None:
        """Raise the error that ended the connection, if it has ended. The caller holds `changed`."""
        if self._broken is not None:
            raise renewed(self._broken)

    def send(self, frames: Buffer) -> None:
        """Send whole frames. It does not raise: a failure breaks the channel, which fails everything outstanding."""
        try:
            with self._send_lock:
                self._link.sendall(frames)
        except BlockingIOError:
            self._break(BookieUnavailable(f"{self.address}: took no data for {self.timeout_s} s; is it overloaded?"))
        except OSError as error:
            self._break(BookieUnavailable(f"{self.address}: connection lost ({error}); reconnect and ask again"))

    def submit(self, request: Request) -> Reply[Any]:
        """Send a request as soon as its key is free and the channel is not full.

        Args:
            request: The request.

        Returns:
            The pending reply.

        Raises:
            IncorrectParameter: The request does not fit into a frame.
            RequestTimeout: The request could not be sent within the time limit.
        """
        request.fits(self.frame_bytes_max)
        now = time.monotonic()
        reply: Reply[Any] = Reply(self.changed, self.address, request, now + request.timeout_s)
        with self.changed:
            self._wait_while(lambda: self._blocked(request.key), now + self.timeout_s, request)
            self._pending[request.key] = reply
        frame, request.frame = request.frame, b""  # the reply must not keep the sent frame in memory
        self.send(frame)
        return reply

    def _wait_while(self, blocked: Callable[[], bool], deadline: float, what: object) -> None:
        """Wait while requests are outstanding that prevent sending. The caller holds `changed`.

        These are requests whose responses could be confused with ours, or too many of any kind.
        """
        while blocked():
            self.raise_if_broken()
            if not self.changed.wait(deadline - time.monotonic()):
                raise RequestTimeout(f"{self.address}: {what}: not sent, {len(self._pending)} requests are unanswered")
        self.raise_if_broken()

    def _receive(self) -> None:
        """Receive responses until the connection ends; the body of the receiving thread."""
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
        """Complete the reply to which a response belongs; ignore a response that belongs to none."""
        code, at, size = row[1], row[5], row[6]
        key = self.wire.key(row)
        reply = self._pending.get(key)
        if reply is None:
            return
        # An unknown code raises; the reply then fails together with the connection.
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
        """Time out the requests that are due."""
        now = time.monotonic()
        with self.changed:
            due = [key for key, reply in self._pending.items() if reply.deadline <= now]
            for key in due:
                self._pending[key].expire()
                if self.wire.by_transaction:
                    del self._pending[key]
            self.changed.notify_all()

    def _break(self, error: BookKeeperError) -> None:
        """End the connection and fail everything outstanding. Only the first call has an effect, and its error is
        kept.
        """
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
