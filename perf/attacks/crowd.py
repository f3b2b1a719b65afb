"""Malicious connections: a constant number of them, where each one that is closed is replaced by a new one.

One thread with non-blocking sockets. They use addresses of their own (127.0.0.2 and up), so that limits per address
apply to them.
"""

import errno
import resource
import select
import socket
import struct
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from perf.paired import HERE

__all__ = ["gather", "Manners"]

TURN_S = 0.01
DESCRIPTORS = 8192

COMERS_MOST = 200
"""The most new connections in one turn."""
RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """The behaviour of each connection."""

    door: str
    """`data`, `http` or `grpc`."""
    count: int
    addresses: int = 1
    words: bytes = b""
    """The bytes to send at once."""
    then: bytes = b""
    """The bytes to send repeatedly, after a first response."""
    reads: bool = True
    """Whether responses are read."""
    bytes_s: int = 0
    """The most response bytes to read per second, over all connections; 0: no limit."""
    segment_bytes: int = 0
    receive_bytes: int = 0
    comes_s: int = 0
    """Connections per second that are opened and closed at once; 0: connections stay open."""


@dataclass
class Member:
    """A connection of the crowd, and what it still has to send."""

    sock: socket.socket
    left: memoryview
    answered: bool = False


@dataclass
class Crowd:
    """A number of connections that behave alike. Call `turn` repeatedly, then `end`."""

    manners: Manners
    port: int
    disconnected: int = 0
    opened: int = 0
    _members: dict[int, Member] = field(default_factory=dict)
    _watch: select.epoll = field(default_factory=select.epoll)
    _began: float = field(default_factory=time.monotonic)
    _taken: int = 0
    _buffer: bytearray = field(default_factory=lambda: bytearray(1 << 18))

    def turn(self, wait_s: float) -> None:
        """Open missing connections, and let those that can proceed do so."""
        if self.manners.comes_s:
            self._come_and_go()
            return
        for _ in range(min(COMERS_MOST, self.manners.count - len(self._members))):
            self._come()
        for number, events in self._watch.poll(wait_s, 512):
            member = self._members[number]
            going_on = events == select.EPOLLOUT or self._hear(member)
            if not going_on or (events & select.EPOLLOUT and not self._say(member)):
                self._lose(number)

    def end(self) -> None:
        """Close all connections."""
        for member in self._members.values():
            member.sock.close()
        self._watch.close()

    def _socket(self) -> socket.socket:
        sock = socket.socket()
        sock.setblocking(False)
        if self.manners.segment_bytes:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, self.manners.segment_bytes)
        if self.manners.receive_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.manners.receive_bytes)
        sock.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT: ports by connection, not by address
        sock.bind((f"127.0.0.{2 + self.opened % self.manners.addresses}", 0))
        self.opened += 1
        if sock.connect_ex(("127.0.0.1", self.port)) not in (0, errno.EINPROGRESS):
            sock.close()
            raise ConnectionError("the bookie's backlog is full, or this process is out of descriptors")
        return sock

    def _come(self) -> None:
        member = Member(self._socket(), memoryview(self.manners.words))
        self._members[member.sock.fileno()] = member
        self._watch.register(member.sock, self._events(member))

    def _come_and_go(self) -> None:
        due = int((time.monotonic() - self._began) * self.manners.comes_s) - self.opened
        for _ in range(min(due, COMERS_MOST)):
            sock = self._socket()
            sock.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, RESET
            )  # otherwise its port remains in use for a minute
            sock.close()
        if due <= 0:
            time.sleep(0.001)

    def _events(self, member: Member) -> int:
        wants = select.EPOLLOUT if member.left else 0
        hears = self.manners.reads or not member.answered
        return wants | (select.EPOLLIN if hears else 0)

    def _say(self, member: Member) -> bool:
        try:
            member.left = member.left[member.sock.send(member.left) :]
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not member.left and member.answered and self.manners.then:
            member.left = memoryview(self.manners.then)
        if not member.left:
            self._watch.modify(member.sock, self._events(member))
        return True

    def _hear(self, member: Member) -> bool:
        allowed = len(self._buffer)
        if self.manners.bytes_s and member.answered:
            allowed = int((time.monotonic() - self._began) * self.manners.bytes_s) - self._taken
            if allowed <= 0:
                time.sleep(0.001)
                return True
        try:
            got = member.sock.recv_into(self._buffer, min(allowed, len(self._buffer)))
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._taken += got if member.answered else 0
        if got and not member.answered:
            member.answered = True
            member.left = memoryview(self.manners.then)
            self._watch.modify(member.sock, self._events(member))
        return got > 0

    def _lose(self, number: int) -> None:
        self.disconnected += 1
        member = self._members.pop(number)
        self._watch.unregister(member.sock)
        member.sock.close()


def gather(manners: Manners, port: int, parent: Connection) -> None:
    """Run such connections to a port, as the work of an `Aside`."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(DESCRIPTORS, hard), hard))
    crowd = Crowd(manners, port)
    crowd.turn(TURN_S)
    parent.send(HERE)
    while not parent.poll():
        crowd.turn(TURN_S)
    parent.recv()
    crowd.end()
    parent.send({"opened": crowd.opened, "disconnected": crowd.disconnected})
