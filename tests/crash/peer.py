"""A client of the wire protocol that shares no code with the bookie, and records all requests and responses.

One socket and one thread each. Payloads are a function of ledger and entry, so they need not be stored.
"""

import hashlib
import random
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.crash import v3
from tests.history.events import History, fingerprint

__all__ = ["body_of", "Ledger", "Peer", "PeerLost", "size_of"]

ADD, READ, BATCH_READ = 1, 2, 7
FENCE, RECOVERY = 1, 2
OK, NO_LEDGER, NO_ENTRY, FENCED, READ_ONLY = 0, 1, 2, 104, 105
LAST = -1
HEADER = struct.Struct(">qqqq")
ANSWER = struct.Struct(">IIiqq")
POOL = random.Random(1).randbytes(1 << 20)
RECEIVE = 1 << 18
ANSWER_S = 60.0


class PeerLost(ConnectionError):
    """The bookie has closed the connection."""


@dataclass(slots=True)
class Ledger:
    """A ledger from its writer's point of view."""

    id: int
    sent: int = 0
    """One above the highest entry ever sent."""
    acked: set[int] = field(default_factory=set)
    lac: int = -1
    closed: bool = False
    """Its writer no longer writes to it."""
    fenced: bool = False

    @property
    def key(self) -> bytes:
        return hashlib.sha1(b"ledger %d" % self.id).digest()

    def acknowledge(self, entry: int) -> None:
        self.acked.add(entry)
        while self.lac + 1 in self.acked:
            self.lac += 1


def drawn(ledger: int, entry: int) -> tuple[int, int]:
    """Return the payload size of an entry, and a number that selects its bytes."""
    mixed = (ledger * 0x9E3779B97F4A7C15 + entry * 0xD1B54A32D192ED03) & 0xFFFFFFFFFFFFFFFF
    mixed ^= mixed >> 29
    kind, scale = mixed % 1000, mixed >> 12 & 0xFFFF
    limit = 200 if kind < 600 else 4_000 if kind < 900 else 32_000 if kind < 999 else 400_000
    return limit * scale >> 16, mixed >> 20


def size_of(ledger: int, entry: int) -> int:
    """Return the size of the entry as it is stored."""
    return HEADER.size + drawn(ledger, entry)[0]


def body_of(ledger: int, entry: int, lac: int) -> bytes:
    """Return the entry as it is stored. Most are small, some large, and one in a thousand has hundreds of KiB."""
    size, place = drawn(ledger, entry)
    at = place % (len(POOL) - size)
    return HEADER.pack(ledger, entry, lac, size) + POOL[at : at + size]


def add_frame(key: bytes, body: bytes, flags: int) -> bytes:
    return struct.pack(">II", 24 + len(body), 2 << 24 | ADD << 16 | flags) + key + body


class Peer:
    """A connection to the bookie that records what it sends and receives.

    `name` is its name in the history. With `protocol` 3 it can only add.
    """

    def __init__(self, history: History, name: str, address: tuple[str, int], *, protocol: int = 2) -> None:
        self.protocol = protocol
        self.history = history
        self.name = name
        self.outstanding: dict[tuple[int, int], tuple[int, str, str]] = {}
        self._buffer = bytearray()
        self._socket = socket.create_connection(address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.settimeout(ANSWER_S)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    # Adds, sent in bursts; responses are read at any time.

    def send_adds(self, ledger: Ledger, first: int, count: int, *, recovery: bool = False, key: bytes = b"") -> None:
        """Send adds of consecutive entries, without waiting for their responses."""
        op, flags, key = ("recovery_add", RECOVERY, key) if recovery else ("add", 0, key)
        lac = min(ledger.lac, first - 1)
        bodies = [body_of(ledger.id, entry, lac) for entry in range(first, first + count)]
        prints = [fingerprint(body) for body in bodies]
        key = key or ledger.key
        number = self.history.invoke(self.name, op, ledger.id, first, prints, lac=lac, key=key.hex())
        for entry, body in enumerate(prints, first):
            self.outstanding[ledger.id, entry] = number, op, body
        if self.protocol == 3:
            self._send(b"".join(v3.add_frame(key, body, flags, number) for body in bodies))
        else:
            self._send(b"".join(add_frame(key, body, flags) for body in bodies))

    def take_adds(self, *, wait: bool = True) -> list[tuple[int, int, int]]:
        """Return (ledger, entry, code) of the responses received; at least one if `wait` and one is outstanding."""
        self._socket.settimeout(ANSWER_S if wait and self.outstanding else 0)
        taken: list[tuple[int, int, int]] = []
        try:
            while self.outstanding and not taken:
                self._receive()
                taken = [(ledger, entry, code) for code, ledger, entry, _ in self._cut()]
        except BlockingIOError:
            pass
        finally:
            self._socket.settimeout(ANSWER_S)
        self._record(taken)
        return taken

    def _record(self, taken: list[tuple[int, int, int]]) -> None:
        """Record one event for consecutive entries of one request with the same code."""
        at = 0
        while at < len(taken):
            ledger, first, code = taken[at]
            number, op, body = self.outstanding.pop((ledger, first))
            bodies = [body]
            at += 1
            while at < len(taken) and taken[at] == (ledger, first + len(bodies), code):
                following = self.outstanding[ledger, first + len(bodies)]
                if following[0] != number:
                    break
                bodies.append(self.outstanding.pop((ledger, first + len(bodies)))[2])
                at += 1
            self.history.answer(number, self.name, op, ledger, first, code, bodies)

    def add(self, ledger: Ledger, entry: int, *, recovery: bool = False, key: bytes = b"") -> int:
        """Add one entry and return the code. Nothing else may be outstanding."""
        self.send_adds(ledger, entry, 1, recovery=recovery, key=key)
        return self.take_adds()[0][2]

    # All other requests, one at a time.

    def fence(self, ledger: Ledger) -> int:
        """Fence by reading the last entry, and return the code; "no such entry" is a success too."""
        return self._read_one("fence", ledger.id, LAST, FENCE, ledger.key)[0]

    def read(self, ledger: int, entry: int) -> int:
        """Read an entry and return the code."""
        return self._read_one("read", ledger, entry)[0]

    def last(self, ledger: int) -> tuple[int, int]:
        """Read the last entry and return code and id."""
        return self._read_one("last", ledger, LAST)

    def batch_read(self, ledger: int, first: int, count: int, size: int) -> tuple[int, int]:
        """Read consecutive entries, and return the code and the number of entries received."""
        number = self.history.invoke(self.name, "batch_read", ledger, first)
        body = struct.pack(">IqqqiqI", 2 << 24 | BATCH_READ << 16, ledger, first, number, count, size, 0)[:-4]
        self._send(struct.pack(">I", len(body)) + body)
        code, _, _, rest = self._one()
        prints = [fingerprint(entry) for entry in records(rest[8:])]
        self.history.answer(number, self.name, "batch_read", ledger, first, code, prints)
        return code, len(prints)

    def _read_one(self, op: str, ledger: int, entry: int, flags: int = 0, key: bytes = b"") -> tuple[int, int]:
        number = self.history.invoke(self.name, op, ledger, entry)
        self._send(struct.pack(">IIqq", 20 + len(key), 2 << 24 | READ << 16 | flags, ledger, entry) + key)
        code, _, _, body = self._one()
        found, lac = struct.unpack_from(">qq", body, 8) if code == OK and len(body) >= HEADER.size else (entry, -1)
        prints = [fingerprint(body)] if code == OK else []
        self.history.answer(number, self.name, op, ledger, found if entry == LAST else entry, code, prints, lac=lac)
        return code, found

    # The socket.

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise PeerLost(f"{self.name}: {error}") from error

    def _receive(self) -> None:
        try:
            data = self._socket.recv(RECEIVE)
        except (BlockingIOError, TimeoutError):
            raise
        except OSError as error:
            raise PeerLost(f"{self.name}: {error}") from error
        if not data:
            raise PeerLost(f"{self.name}: end of stream")
        self._buffer += data

    def _cut(self) -> Iterator[tuple[int, int, int, bytes]]:
        """Yield (code, ledger, entry, rest) of each complete response in the buffer; the rest stays in it."""
        while self.protocol == 3 and len(self._buffer) >= 4:
            (length,) = struct.unpack_from(">I", self._buffer)
            if len(self._buffer) < 4 + length:
                return
            answer = v3.add_answer(bytes(self._buffer[4 : 4 + length]))
            del self._buffer[: 4 + length]
            yield *answer, b""
        while len(self._buffer) >= ANSWER.size:
            length, _, code, ledger, entry = ANSWER.unpack_from(self._buffer)
            if len(self._buffer) < 4 + length:
                break
            rest = bytes(self._buffer[ANSWER.size : 4 + length])
            del self._buffer[: 4 + length]
            yield code, ledger, entry, rest

    def _one(self) -> tuple[int, int, int, bytes]:
        while True:
            for answer in self._cut():
                return answer
            self._receive()


def records(run: bytes) -> Iterator[memoryview]:
    """Yield the entries of a run of `u32 length | entry`."""
    view, at = memoryview(run), 0
    while at < len(run):
        (length,) = struct.unpack_from(">I", run, at)
        yield view[at + 4 : at + 4 + length]
        at += 4 + length
