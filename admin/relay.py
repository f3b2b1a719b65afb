"""Carries the bytes of visitors to a server that accepts for itself, and back: gRPC, behind a door of ours.

    relay = Relay(private, wait_s=10.0)
    relay.carry(visitor)               # on the event loop of the door

Each way holds what one `recv` brought, until the other end has taken all of it; meanwhile nothing more is read. Who
takes too long for that is turned away. A visitor that says no more is still answered; a server that says no more has
closed.
"""

import asyncio
import contextlib
import socket

from admin.door import USED_UP, Visitor
from admin.private_socket import PrivateSocket

__all__ = ["Relay"]

CHUNK_BYTES = 64 * 1024
LINGER_S = 1.0
"""Between the server's close and ours."""


class Relay:
    """To the server behind `private`. The event loop of the door."""

    def __init__(self, private: PrivateSocket, *, wait_s: float) -> None:
        self._private = private
        self._wait_s = wait_s
        self._open: set[_Pair] = set()

    def carry(self, visitor: Visitor) -> None:
        """Connect it to the server; it is never idle for the door."""
        try:
            name = _name_of(visitor.sock)
            visitor.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:  # it has gone meanwhile
            visitor.close()
            visitor.leave()
            return
        try:
            inside = self._private.connect(name)
        except OSError as error:
            visitor.turn_away("descriptors" if error.errno in USED_UP else "connections")
            return
        visitor.busy()
        pair = _Pair(visitor, inside, self._wait_s, self._open)
        self._open.add(pair)
        pair.start()

    def close(self) -> None:
        """End what is open still."""
        for pair in list(self._open):
            pair.close()


class _Pair:
    """A visitor, and its connection to the server."""

    __slots__ = ("_among", "_inside", "_visitor", "_ways")

    def __init__(self, visitor: Visitor, inside: socket.socket, wait_s: float, among: "set[_Pair]") -> None:
        self._visitor = visitor
        self._inside = inside
        self._among = among
        self._ways = (
            _Way(visitor.sock, inside, self, wait_s),
            _Way(inside, visitor.sock, self, wait_s),
        )
        visitor.close = self.close

    def start(self) -> None:
        for way in self._ways:
            way.start()

    def ended(self, source: socket.socket) -> None:
        """Nothing more comes from there; what came is passed on."""
        if source is self._inside:
            self._visitor.idle()
            asyncio.get_running_loop().call_later(LINGER_S, self.close)

    def broken(self, sock: socket.socket) -> bool:
        """It has gone: close, if that is the visitor. What the server said last is still to be passed on."""
        if sock is self._inside:
            return False
        self.close()
        return True

    def too_slow(self, sink: socket.socket) -> None:
        """That one takes nothing."""
        self._visitor.turn_away("slow_reader" if sink is self._visitor.sock else "connections")

    def close(self) -> None:
        """Both ways; idempotent."""
        if self in self._among:
            self._among.remove(self)
            for way in self._ways:
                way.stop()
            self._inside.close()
            self._visitor.sock.close()
            self._visitor.leave()


class _Way:
    """From one socket to the other one."""

    __slots__ = ("_loop", "_pair", "_rest", "_sink", "_source", "_timer", "_wait_s")

    def __init__(self, source: socket.socket, sink: socket.socket, pair: _Pair, wait_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._source = source
        self._sink = sink
        self._pair = pair
        self._wait_s = wait_s
        self._rest = b""
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._loop.add_reader(self._source, self._read)

    def stop(self) -> None:
        self._loop.remove_reader(self._source)
        self._loop.remove_writer(self._sink)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _read(self) -> None:
        try:
            found = self._source.recv(CHUNK_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            if self._pair.broken(self._source):
                return
            found = b""
        if not found:
            self._finish()
            return
        rest = self._send(found)
        if rest:
            self._rest = rest
            self._loop.remove_reader(self._source)
            self._loop.add_writer(self._sink, self._write)
            self._timer = self._loop.call_later(self._wait_s, self._pair.too_slow, self._sink)

    def _write(self) -> None:
        self._rest = self._send(self._rest)
        if not self._rest and self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._loop.remove_writer(self._sink)
            self._loop.add_reader(self._source, self._read)

    def _send(self, part: bytes) -> bytes:
        """What it does not take now; nothing where it has gone, and then nothing more is read either."""
        try:
            return part[self._sink.send(part) :]
        except (BlockingIOError, InterruptedError):
            return part
        except OSError:
            if not self._pair.broken(self._sink):
                self.stop()
            return b""

    def _finish(self) -> None:
        self.stop()
        with contextlib.suppress(OSError):
            self._sink.shutdown(socket.SHUT_WR)
        self._pair.ended(self._source)


def _name_of(sock: socket.socket) -> str:
    """As gRPC writes a peer. OSError where it has gone."""
    host, port = sock.getpeername()[:2]
    host = host.removeprefix("::ffff:")
    return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"
