"""Relays bytes between connections of the door and the private socket of a server that accepts its own connections:
gRPC.

    relay = Relay(private, wait_s=10.0)
    relay.carry(visitor)               # on the event loop of the door

Each direction holds the bytes of one `recv` until the other side has taken all of them, and reads no more in the
meantime. A peer that takes too long is turned away. A client that has closed its sending side still receives its
answers; a server that has closed its sending side has closed the connection.
"""

import asyncio
import contextlib
import socket

from bookie_admin.door import USED_UP, Visitor
from bookie_admin.private_socket import PrivateSocket

__all__ = ["Relay"]

CHUNK_BYTES = 64 * 1024
LINGER_S = 1.0
"""Seconds between the server closing the connection and the relay closing it."""


class Relay:
    """Relays connections to the server behind `private`. Used on the event loop of the door.

    Args:
        private: the socket of the server.
        wait_s: seconds that a peer may take to accept a block of bytes.
    """

    def __init__(self, private: PrivateSocket, *, wait_s: float) -> None:
        self._private = private
        self._wait_s = wait_s
        self._open: set[_Pair] = set()

    def carry(self, visitor: Visitor) -> None:
        """Connect a visitor to the server. It is busy for the door until the server closes the connection."""
        try:
            name = _name_of(visitor.sock)
            visitor.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:  # the peer has disconnected in the meantime
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
        """Close all connections."""
        for pair in list(self._open):
            pair.close()


class _Pair:
    """A visitor and its connection to the server."""

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
        """Handle the end of one direction, all of whose bytes were passed on."""
        if source is self._inside:
            self._visitor.idle()
            asyncio.get_running_loop().call_later(LINGER_S, self.close)

    def broken(self, sock: socket.socket) -> bool:
        """Handle a broken connection; return whether the pair was closed, which happens if the client's side broke. If
        the server's side broke, its last bytes are still passed on.
        """
        if sock is self._inside:
            return False
        self.close()
        return True

    def too_slow(self, sink: socket.socket) -> None:
        """Turn the visitor away, because one side takes no bytes."""
        self._visitor.turn_away("slow_reader" if sink is self._visitor.sock else "connections")

    def close(self) -> None:
        """Close both directions. Idempotent."""
        if self in self._among:
            self._among.remove(self)
            for way in self._ways:
                way.stop()
            self._inside.close()
            self._visitor.sock.close()
            self._visitor.leave()


class _Way:
    """One direction of a pair, from one socket to the other."""

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
        """Send bytes and return those not sent; b"" if the other side has disconnected, and then reading ends too."""
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
    """Return the peer's name in gRPC's notation.

    Raises:
        OSError: the peer has disconnected.
    """
    host, port = sock.getpeername()[:2]
    host = host.removeprefix("::ffff:")
    return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"
