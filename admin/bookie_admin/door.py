"""The door of an admin port: accepts connections within limits, and hands them over once they send something. It runs
on one event loop.

    door = Door("http", listener, limits, admit)
    door.open(loop)                # from now on `admit(visitor)` is called for each connection that has sent something

Until its first byte arrives, a connection costs its socket and a small record. A connection without a request in
progress is *idle*. When the door is full, one of the oldest idle connections is closed for the next one, so that peers
which only connect, or stop in the middle of a request, cannot keep others out.
"""

import asyncio
import contextlib
import errno
import logging
import socket
import struct
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

from bookie.server.logs.rejections import SEVERAL, report
from bookie.server.metrics.ports import REASONS

__all__ = ["Door", "Limits", "listen", "USED_UP", "Visitor"]

BACKLOG = 1024
ACCEPTED_AT_ONCE = 64
"""Connections accepted at a time, before the event loop serves the existing ones again."""
OLDEST = 16
"""How many of the oldest idle connections are compared to choose the one to close. Of these, the address with most
connections loses one, so that a flood from a few addresses does not hurt others.
"""
LOOK_S = 1.0
PAUSE_S = 0.1
"""How long accepting pauses when there are no file descriptors."""
ADDRESSES_LOGGED = 8
"""The most addresses logged per second; further ones are logged as `several`."""
USED_UP = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one door: connections in total and per address, and seconds until the first byte."""

    connections: int
    per_address: int
    first_byte_s: float


class Visitor:
    """An accepted connection. It is idle until `busy`, and counts until `leave`. Used on the door's event loop."""

    __slots__ = ("_door", "address", "close", "held", "since", "sock")

    def __init__(self, door: "Door", sock: socket.socket, address: str, since: float) -> None:
        self._door = door
        self.sock = sock
        self.address = address
        self.since = since
        """When it became idle, by the event loop's clock."""
        self.held = True
        """Whether the door still waits for its first byte."""
        self.close: Callable[[], object] = sock.close
        """Closes it at once. The code to which it is handed over replaces this by a function of its own, which must
        lead to `leave`.
        """

    def busy(self) -> None:
        """Mark it as busy: it is not closed in favour of others."""
        self._door.busy(self)

    def idle(self) -> None:
        """Mark it as idle."""
        self._door.idle(self)

    def leave(self) -> None:
        """Stop counting it, because it is closed. Idempotent."""
        self._door.forget(self)

    def turn_away(self, reason: str) -> None:
        """Close it and count it under one of REASONS."""
        self._door.turn_away(self, reason)


@dataclass(slots=True)
class _Address:
    """The connections from one address."""

    visitors: int = 0
    idle: OrderedDict[Visitor, None] = field(default_factory=OrderedDict)


class Door:
    """Accepts connections for the port `name`. The constructor accepts nothing; `shut` closes `listener`.

    Args:
        name: the name of the port, for metrics and logs.
        listener: a listening socket.
        limits: the limits of the port.
        admit: called with each connection that has sent its first byte.
    """

    def __init__(self, name: str, listener: socket.socket, limits: Limits, admit: Callable[[Visitor], None]) -> None:
        self._name = name
        self._listener = listener
        self._limits = limits
        self._admit = admit
        self._loop: asyncio.AbstractEventLoop | None = None
        self._visitors: set[Visitor] = set()
        self._idle: OrderedDict[Visitor, None] = OrderedDict()  # the one that has been idle for longest comes first
        self._addresses: dict[str, _Address] = {}
        self._counts = dict.fromkeys(REASONS, 0)
        self._rejections: dict[tuple[str, str], int] = {}

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start accepting on this event loop. Call it in the loop's thread."""
        self._loop = loop
        self._listener.setblocking(False)
        loop.add_reader(self._listener, self._accept)
        loop.call_later(LOOK_S, self._look)

    def shut(self) -> None:
        """Stop accepting, and close connections that have sent nothing. Call it in the loop's thread. Idempotent."""
        if self._loop is None or self._loop.is_closed():
            self._listener.close()
            return
        if self._listener.fileno() >= 0:
            self._loop.remove_reader(self._listener)
            self._listener.close()
            for visitor in [one for one in self._visitors if one.held]:
                self._end(visitor)
            self._tell()

    def stats(self) -> dict[str, int]:
        """Return the number of connections, and of peers turned away by reason. Any thread."""
        turned_away = {f"{self._name}_turned_away_{reason}": times for reason, times in self._counts.items()}
        return {f"{self._name}_connections": len(self._visitors), **turned_away}

    def busy(self, visitor: Visitor) -> None:
        """Mark a connection as busy; called through `Visitor.busy`."""
        if self._idle.pop(visitor, self) is None:
            del self._addresses[visitor.address].idle[visitor]

    def idle(self, visitor: Visitor) -> None:
        """Mark a connection as idle; called through `Visitor.idle`."""
        if visitor in self._visitors and visitor not in self._idle:
            visitor.since = self._now()
            self._idle[visitor] = self._addresses[visitor.address].idle[visitor] = None

    def forget(self, visitor: Visitor) -> None:
        """Stop counting a closed connection. Idempotent; called through `Visitor.leave`."""
        if visitor not in self._visitors:
            return
        self.busy(visitor)
        self._visitors.remove(visitor)
        address = self._addresses[visitor.address]
        address.visitors -= 1
        if not address.visitors:
            del self._addresses[visitor.address]

    def turn_away(self, visitor: Visitor, reason: str) -> None:
        """Close a connection and count it under `reason`; called through `Visitor.turn_away`."""
        if visitor in self._visitors:
            self._reject(visitor.address, reason)
            self._end(visitor)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                sock, peer = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                continue
            except OSError as error:
                self._cannot_accept(error)
                return
            self._enter(sock, peer[0].removeprefix("::ffff:"))

    def _cannot_accept(self, error: OSError) -> None:
        """Pause accepting for a moment. If file descriptors are used up, close idle connections too."""
        if error.errno in USED_UP:
            self._reject(SEVERAL, "descriptors")
            for _ in range(min(ACCEPTED_AT_ONCE, len(self._idle))):
                self.turn_away(self._dispensable(self._idle), "gave_way")
        loop = self._running()
        loop.remove_reader(self._listener)
        loop.call_later(PAUSE_S, self._go_on)

    def _go_on(self) -> None:
        if self._listener.fileno() >= 0:
            self._running().add_reader(self._listener, self._accept)

    def _enter(self, sock: socket.socket, host: str) -> None:
        """Admit a connection, closing an idle one for it if necessary, or refuse it."""
        known = self._addresses.get(host)
        if known is not None and known.visitors >= self._limits.per_address:
            reason, idle = "connections_of_address", known.idle
        elif len(self._visitors) >= self._limits.connections:
            reason, idle = "connections", self._idle
        else:
            reason, idle = "", self._idle
        if reason and not idle:
            self._reject(host, reason)
            _reset(sock)
            return
        if reason:
            self.turn_away(self._dispensable(idle), "gave_way")
        sock.setblocking(False)
        visitor = Visitor(self, sock, host, self._now())
        self._visitors.add(visitor)
        address = self._addresses.setdefault(host, _Address())
        address.visitors += 1
        self._idle[visitor] = address.idle[visitor] = None
        self._running().add_reader(sock, self._first_byte, visitor)

    def _dispensable(self, idle: OrderedDict[Visitor, None]) -> Visitor:
        """Return the idle connection to close: of the oldest ones, one whose address has the most connections."""
        return max(islice(idle, OLDEST), key=lambda one: self._addresses[one.address].visitors)

    def _first_byte(self, visitor: Visitor) -> None:
        """Hand over a connection that has become readable, unless its peer has just closed it."""
        try:
            there = visitor.sock.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            there = b""
        if not there:
            self._end(visitor)
            return
        self._running().remove_reader(visitor.sock)
        visitor.held = False
        self._admit(visitor)

    def _end(self, visitor: Visitor) -> None:
        self.forget(visitor)
        if visitor.held:
            self._running().remove_reader(visitor.sock)
            _reset(visitor.sock)
        else:
            visitor.close()

    def _look(self) -> None:
        """Close connections that have been silent for too long, and log what was refused; runs once a second."""
        loop = self._running()
        long_ago = loop.time() - self._limits.first_byte_s
        late = []
        for visitor in self._idle:
            if visitor.since > long_ago:
                break
            if visitor.held:
                late.append(visitor)
        for visitor in late:
            self.turn_away(visitor, "silent")
        self._tell()
        if self._listener.fileno() >= 0 or self._visitors:
            loop.call_later(LOOK_S, self._look)

    def _reject(self, address: str, reason: str) -> None:
        self._counts[reason] += 1
        if (address, reason) not in self._rejections and len(self._rejections) >= ADDRESSES_LOGGED:
            address = SEVERAL
        self._rejections[address, reason] = self._rejections.get((address, reason), 0) + 1

    def _tell(self) -> None:
        rejections, self._rejections = self._rejections, {}
        rows = [(address, REASONS[reason], times) for (address, reason), times in rejections.items()]
        for row in report(rows):
            log.warning("turned away a peer", extra={"port": self._name, **row})

    def _running(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None
        return self._loop

    def _now(self) -> float:
        return self._running().time()


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. An IPv6 address also accepts IPv4 connections.

    Raises:
        OSError: the address cannot be bound.
    """
    if ":" in host:
        family, both = socket.AF_INET6, socket.has_dualstack_ipv6()
        return socket.create_server((host, port), family=family, backlog=BACKLOG, dualstack_ipv6=both)
    return socket.create_server((host, port), backlog=BACKLOG)


def _reset(sock: socket.socket) -> None:
    """Close a socket with a reset, so that its peer notices at once, whatever it has sent."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
