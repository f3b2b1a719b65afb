"""One TCP connection to one bookie, with a thread that receives: the connection of a channel. Pipelined, thread-safe.

Like the links of the ledger client, it takes requests and the meaning of responses from `bookie.client.wire`. Only
this module knows sockets and threads.

Any number of threads may call. Each call encodes and sends on its own thread, under a lock that keeps frames whole. One
receiving thread per connection reads responses, splits them without the GIL, and completes the replies in groups.
"""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from typing_extensions import Buffer

from bookie._fast.client.add_window import AddWindow
from bookie.client.channel.connection import Connection
from bookie.client.channel.reply import Reply, renewed
from bookie.client.channel.streams import Streams
from bookie.client.wire.receive import ReceiveBuffer
from bookie.client.wire.request import Key, Request, Wire
from bookie.client.wire.security import Security, Transport
from bookie.client.wire.unanswered import Unanswered
from bookie.client.wire.unreachable import unreachable
from bookie.errors import BookieUnavailable, BookKeeperError, ClientClosed, RequestTimeout
from bookie.plural import counted

TICK_S = 1.0


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a connection; `BookieChannel.connect` describes them."""

    timeout_s: float
    connect_timeout_s: float
    outstanding_max: int


class ThreadedConnection(Connection):
    """A connection to one bookie. Open it with `connect`."""

    def __init__(self, link: Transport, address: str, wire: Wire, limits: Limits) -> None:
        self.address = address
        self.timeout_s = limits.timeout_s
        self._tick_s = _tick_s(limits)
        self._outstanding_max = limits.outstanding_max
        self._wire = wire
        self._link = link
        self._send_lock = threading.Lock()
        self._thread = threading.Thread(target=self._receive, name=f"bookie-channel-{address}", daemon=True)
        self._changed = threading.Condition()
        # The fields below are guarded by `_changed`.
        self._streams = Streams(by_transaction=wire.by_transaction)
        self._unanswered: Unanswered[Reply[Any]] = Unanswered(wire, address, adds=self._streams.adds)
        self._broken: BookKeeperError | None = None

    @classmethod
    def connect(cls, host: str, port: int, wire: Wire, limits: Limits, security: Security) -> Self:
        """Connect, encrypt as `security` says, and start the receiving thread.

        Args:
            host: The host name or address of the bookie.
            port: The port of the bookie.
            wire: The protocol.
            limits: The limits of the connection.
            security: How to encrypt; the caller authenticates.

        Returns:
            The open connection.

        Raises:
            BookieUnavailable: Nothing accepts connections at the address.
            SecurityError: The TLS handshake failed, or the bookie does not support TLS.
        """
        address = f"{host}:{port}"
        try:
            sock = socket.create_connection((host, port), timeout=limits.connect_timeout_s)
        except OSError as error:
            raise unreachable(address, error) from error
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = security.secure(sock, host, address)
            sock.settimeout(None)  # from here on the kernel enforces a time limit for each direction
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(limits.timeout_s))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(_tick_s(limits)))
        except BaseException:
            sock.close()
            raise
        connection = cls(link, address, wire, limits)
        connection._thread.start()
        return connection

    def close(self) -> None:
        """Fail all outstanding requests with ClientClosed, end the receiving thread, and close the socket.

        Further calls do nothing.
        """
        self._break(ClientClosed(f"{self.address}: the channel was closed"))
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._link.close()

    # --- requests -----------------------------------------------------------------------------------------------------

    def submit(self, request: Request) -> Reply[Any]:
        """Send a request as soon as its key is free and there are not too many unanswered ones; see `Connection`."""
        request.fits(self._wire.frame_bytes_max)
        now = time.monotonic()
        reply: Reply[Any] = Reply(self._changed, self.address, request, now + request.timeout_s)
        with self._changed:
            self._wait_while(lambda: self._must_wait(request.key), request)
            self._unanswered.sent(reply)
        frame, request.frame = request.frame, b""  # the reply must not keep the sent frame in memory
        self._send(frame)
        return reply

    def _must_wait(self, key: Key) -> bool:
        self._streams.check_add(key)
        return self._unanswered.must_wait(key) or len(self._unanswered) >= self._outstanding_max

    def _wait_while(self, blocked: Callable[[], bool], what: object) -> None:
        """Wait while requests are outstanding that prevent sending. The caller holds `_changed`.

        These are requests whose responses could be confused with ours, or too many of any kind.
        """
        deadline = 0.0
        while blocked():
            self._raise_if_broken()
            deadline = deadline or time.monotonic() + self.timeout_s
            if not self._changed.wait(deadline - time.monotonic()):
                unanswered = counted(len(self._unanswered), "unanswered request")
                raise RequestTimeout(f"{self.address}: {what}: not sent, {unanswered}")
        self._raise_if_broken()

    # --- streams ------------------------------------------------------------------------------------------------------

    def open_stream(self, ledger: int, first: int, outstanding: int) -> AddWindow:
        """Begin to take responses for a stream of adds; see `Connection`."""
        with self._changed:
            what = f"adds of ledger {ledger}, entry {first} and on"
            self._wait_while(lambda: self._stream_must_wait(ledger, first), what)
            return self._streams.open(ledger, first, outstanding)

    def _stream_must_wait(self, ledger: int, first: int) -> bool:
        self._streams.check_stream(ledger)
        return self._unanswered.stream_must_wait(ledger, first)

    def send_adds(self, window: AddWindow, frames: Buffer, count: int, transaction: int) -> None:
        """Send the next adds of a stream; see `Connection`."""
        with self._changed:
            self._raise_if_broken()
            self._streams.adds.send(window, count, transaction)
        self._send(frames)

    def wait(self, until: Callable[[], bool], progress: Callable[[], object], timeout_s: float) -> bool:
        """Wait until responses have made a condition true; see `Connection`."""
        with self._changed:
            seen, deadline = progress(), time.monotonic() + timeout_s
            while not until():
                self._raise_if_broken()
                if (now := progress()) != seen:
                    seen, deadline = now, time.monotonic() + timeout_s
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
            return True

    def drop_stream(self, window: AddWindow) -> None:
        """End a stream; see `Connection`."""
        with self._changed:
            self._streams.drop(window)

    # --- the connection -----------------------------------------------------------------------------------------------

    def raise_if_broken(self) -> None:
        """Raise the error that ended the connection, if it has ended."""
        with self._changed:
            self._raise_if_broken()

    def _raise_if_broken(self) -> None:
        """Do the same for a caller that holds `_changed`."""
        if self._broken is not None:
            raise renewed(self._broken)

    def _send(self, frames: Buffer) -> None:
        """Send whole frames. It does not raise: a failure breaks the connection, which fails everything outstanding."""
        try:
            with self._send_lock:
                self._link.sendall(frames)
        except BlockingIOError:
            self._break(BookieUnavailable(f"{self.address}: took no data for {self.timeout_s} s; is it overloaded?"))
        except OSError as error:
            self._break(BookieUnavailable(f"{self.address}: connection lost ({error}); reconnect and ask again"))

    def _receive(self) -> None:
        """Receive responses until the connection ends; the body of the receiving thread."""
        buffer = ReceiveBuffer(self._wire.frame_bytes_max, self._wire.cut)
        next_tick = time.monotonic() + self._tick_s
        try:
            while True:
                with contextlib.suppress(BlockingIOError):
                    if not buffer.receive(self._link):
                        raise ConnectionResetError("the bookie closed it")
                    while self._complete(buffer):
                        pass
                if time.monotonic() >= next_tick:
                    next_tick = time.monotonic() + self._tick_s
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
        with self._changed:
            others = self._streams.adds.acknowledge(buffer.rows, count) if self._streams.adds.count else count
            for row in buffer.rows[:others].tolist() if others else ():
                self._unanswered.complete(row, received, buffer)
            self._changed.notify_all()
        return count

    def _expire(self) -> None:
        """Time out the requests that are due."""
        now = time.monotonic()
        with self._changed:
            for reply in self._unanswered.late(now):
                reply.expire()
            self._changed.notify_all()

    def _break(self, error: BookKeeperError) -> None:
        """End the connection and fail everything outstanding. Only the first call has an effect, and its error is
        kept.
        """
        with self._changed:
            if self._broken is not None:
                return
            self._broken = error
            for reply in self._unanswered.lost():
                reply.fail(renewed(error))
            self._changed.notify_all()
        with contextlib.suppress(OSError):
            self._link.shutdown(socket.SHUT_RDWR)


def _tick_s(limits: Limits) -> float:
    return min(limits.timeout_s / 4, TICK_S)


def _timeval(seconds: float) -> bytes:
    whole = int(seconds)
    return struct.pack("ll", whole, int((seconds - whole) * 1e6))
