"""The door of an admin port: it accepts, within limits, and hands over who has something to say. On one event loop.

    door = Door("http", listener, limits, admit)
    door.open(loop)                # from now on `admit(visitor)` is called for each connection that has sent something

A connection costs its socket and a small record until its first byte is there. While it asks for nothing it is *idle*,
and when the door is full one of the oldest idle ones gives way to the next: who only connects, or stops half way, keeps
nobody out.
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

from bookie.server.logs.complaints import SEVERAL, report
from bookie.server.metrics.ports import REASONS

__all__ = ["Door", "Limits", "listen", "USED_UP", "Visitor"]

BACKLOG = 1024
ACCEPTED_AT_ONCE = 64
"""Then the loop looks after those that are in."""
OLDEST = 16
"""So many are compared when one must give way: a flood of a few addresses leaves others alone."""
LOOK_S = 1.0
PAUSE_S = 0.1
"""Without a descriptor nobody is accepted for so long."""
ADDRESSES_LOGGED = 8
"""A second; more are `several`."""
USED_UP = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one door."""

    connections: int
    per_address: int
    first_byte_s: float


class Visitor:
    """One accepted connection. It is idle until `busy`, and counts until `leave`; the door's event loop."""

    __slots__ = ("_door", "address", "close", "held", "since", "sock")

    def __init__(self, door: "Door", sock: socket.socket, address: str, since: float) -> None:
        self._door = door
        self.sock = sock
        self.address = address
        self.since = since
        """When it became idle."""
        self.held = True
        """Its first byte is not there yet."""
        self.close: Callable[[], object] = sock.close
        """Ends it at once; whoever was handed it puts its own in here, which in the end leads to `leave`."""

    def busy(self) -> None:
        """It asks for something: it gives way to nobody."""
        self._door.busy(self)

    def idle(self) -> None:
        """It asks for nothing any more."""
        self._door.idle(self)

    def leave(self) -> None:
        """It is closed; idempotent."""
        self._door.forget(self)

    def turn_away(self, reason: str) -> None:
        """Close it, for one of REASONS."""
        self._door.turn_away(self, reason)


@dataclass(slots=True)
class _Address:
    """What comes from one address."""

    visitors: int = 0
    idle: OrderedDict[Visitor, None] = field(default_factory=OrderedDict)


class Door:
    """Of the port `name`. The constructor takes nothing; `listener` is closed by `shut`."""

    def __init__(self, name: str, listener: socket.socket, limits: Limits, admit: Callable[[Visitor], None]) -> None:
        self._name = name
        self._listener = listener
        self._limits = limits
        self._admit = admit
        self._loop: asyncio.AbstractEventLoop | None = None
        self._visitors: set[Visitor] = set()
        self._idle: OrderedDict[Visitor, None] = OrderedDict()  # the one that is idle for longest comes first
        self._addresses: dict[str, _Address] = {}
        self._counts = dict.fromkeys(REASONS, 0)
        self._complaints: dict[tuple[str, str], int] = {}

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Accept, on this loop, in its thread."""
        self._loop = loop
        self._listener.setblocking(False)
        loop.add_reader(self._listener, self._accept)
        loop.call_later(LOOK_S, self._look)

    def shut(self) -> None:
        """Accept no more, and close those that have sent nothing; the loop's thread. Idempotent."""
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
        """Connections, and peers turned away by reason. Any thread."""
        turned_away = {f"{self._name}_turned_away_{reason}": times for reason, times in self._counts.items()}
        return {f"{self._name}_connections": len(self._visitors), **turned_away}

    def busy(self, visitor: Visitor) -> None:
        """See Visitor."""
        if self._idle.pop(visitor, self) is None:
            del self._addresses[visitor.address].idle[visitor]

    def idle(self, visitor: Visitor) -> None:
        """See Visitor."""
        if visitor in self._visitors and visitor not in self._idle:
            visitor.since = self._now()
            self._idle[visitor] = self._addresses[visitor.address].idle[visitor] = None

    def forget(self, visitor: Visitor) -> None:
        """See Visitor."""
        if visitor not in self._visitors:
            return
        self.busy(visitor)
        self._visitors.remove(visitor)
        address = self._addresses[visitor.address]
        address.visitors -= 1
        if not address.visitors:
            del self._addresses[visitor.address]

    def turn_away(self, visitor: Visitor, reason: str) -> None:
        """See Visitor."""
        if visitor in self._visitors:
            self._complain(visitor.address, reason)
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
        """Nobody is accepted for a moment. Where descriptors are used up, those that ask for nothing make room."""
        if error.errno in USED_UP:
            self._complain(SEVERAL, "descriptors")
            for _ in range(min(ACCEPTED_AT_ONCE, len(self._idle))):
                self.turn_away(self._dispensable(self._idle), "gave_way")
        loop = self._running()
        loop.remove_reader(self._listener)
        loop.call_later(PAUSE_S, self._go_on)

    def _go_on(self) -> None:
        if self._listener.fileno() >= 0:
            self._running().add_reader(self._listener, self._accept)

    def _enter(self, sock: socket.socket, host: str) -> None:
        """Take it in, in the place of another one if need be, or close it."""
        known = self._addresses.get(host)
        if known is not None and known.visitors >= self._limits.per_address:
            reason, idle = "connections_of_address", known.idle
        elif len(self._visitors) >= self._limits.connections:
            reason, idle = "connections", self._idle
        else:
            reason, idle = "", self._idle
        if reason and not idle:
            self._complain(host, reason)
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
        """Who gives way: of the oldest ones, one whose address has most connections here."""
        return max(islice(idle, OLDEST), key=lambda one: self._addresses[one.address].visitors)

    def _first_byte(self, visitor: Visitor) -> None:
        """Something is there: hand it over, unless it is only the end."""
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
        """Once a second: who has been silent for too long, and what there is to tell."""
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

    def _complain(self, address: str, reason: str) -> None:
        self._counts[reason] += 1
        if (address, reason) not in self._complaints and len(self._complaints) >= ADDRESSES_LOGGED:
            address = SEVERAL
        self._complaints[address, reason] = self._complaints.get((address, reason), 0) + 1

    def _tell(self) -> None:
        told, self._complaints = self._complaints, {}
        rows = [(address, REASONS[reason], times) for (address, reason), times in told.items()]
        for row in report(rows):
            log.warning("turned away a peer", extra={"port": self._name, **row})

    def _running(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None
        return self._loop

    def _now(self) -> float:
        return self._running().time()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. An address of IPv6 takes IPv4 as well. OSError."""
    if ":" in host:
        family, both = socket.AF_INET6, socket.has_dualstack_ipv6()
        return socket.create_server((host, port), family=family, backlog=BACKLOG, dualstack_ipv6=both)
    return socket.create_server((host, port), backlog=BACKLOG)


def _reset(sock: socket.socket) -> None:
    """Close it so that its peer knows at once, whatever it has sent."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
