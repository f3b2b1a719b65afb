"""The table of answers: operation, protocol and condition, and the status that a Java bookie and ours give.

A case makes its own ledger, so cases never see each other. Where ours differs on purpose, `ours` says how, and `why`
gives the reason.
"""

import itertools
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from bookie.client import Digest, DigestType
from bookie.errors import CODES
from bookie.pb import wire_pb2 as pb
from tests.interop.raw import CLOSED, Wire, status
from tests.reference import wire_v2 as v2

DIGEST = Digest.of(DigestType.CRC32C, b"pw")
KEY = DIGEST.master_key
OTHER_KEY = bytes(range(20))
LAST = -1
PRIORITY = 100
Outcome = int | str

EOK, ENOLEDGER, ENOENTRY, EBADREQ = 0, 402, 403, 404
EIO, EUA, EBADVERSION, EFENCED, EREADONLY = 501, 502, 503, 504, 505
EUNKNOWNLEDGERSTATE = 507
V3_BY_V2 = {row.v2: row.v3 for row in CODES if row.v2 is not None and row.v3 is not None}

OPERATIONS: dict[type[Message], tuple[int, str]] = {
    pb.AddRequest: (pb.ADD_ENTRY, "addRequest"),
    pb.AuthMessage: (pb.AUTH, "authRequest"),
    pb.BatchReadRequest: (pb.BATCH_READ_ENTRY, "batchReadRequest"),
    pb.ForceLedgerRequest: (pb.FORCE_LEDGER, "forceLedgerRequest"),
    pb.GetBookieInfoRequest: (pb.GET_BOOKIE_INFO, "getBookieInfoRequest"),
    pb.GetListOfEntriesOfLedgerRequest: (pb.GET_LIST_OF_ENTRIES_OF_LEDGER, "getListOfEntriesOfLedgerRequest"),
    pb.ReadLacRequest: (pb.READ_LAC, "readLacRequest"),
    pb.ReadRequest: (pb.READ_ENTRY, "readRequest"),
    pb.StartTLSRequest: (pb.START_TLS, "startTLSRequest"),
    pb.WriteCloseRequest: (pb.WRITE_CLOSE, "writeCloseRequest"),
    pb.WriteLacRequest: (pb.WRITE_LAC, "writeLacRequest"),
}

_ledgers = itertools.count(1000)


class Bookie:
    """A bookie by its port, with ledgers in the states that cases need. Every request has a connection of its own."""

    def __init__(self, port: int, distrusted: Iterable[int] = ()) -> None:
        """`distrusted` are ledgers in limbo of which no case knows anything yet."""
        self.port = port
        self._distrusted = iter(distrusted)

    def unknown(self) -> int:
        """Return a ledger that the bookie never heard of."""
        return next(_ledgers)

    def filled(self) -> int:
        """Make a ledger with entries 0 to 2. They are written with priority, which a read-only bookie lets through."""
        ledger = self.unknown()
        for entry in range(3):
            assert self.ask(add(ledger, entry), priority=PRIORITY) == EOK
        return ledger

    def fenced(self) -> int:
        """Make a fenced ledger with entries 0 to 2."""
        ledger = self.filled()
        assert self.ask(fence(ledger)) == EOK
        return ledger

    def empty(self) -> int:
        """Make a ledger that is known by its fence alone."""
        ledger = self.unknown()
        assert self.ask(fence(ledger)) == ENOENTRY
        return ledger

    def explicit(self) -> int:
        """Make a ledger with an explicit LAC and no entry."""
        ledger = self.unknown()
        assert self.ask(write_lac(ledger)) == EOK
        return ledger

    def limbo(self) -> int:
        """Return a ledger in limbo without an entry."""
        return next(self._distrusted)

    def recovered(self) -> int:
        """Return a ledger in limbo to which a recovery brought entry 0."""
        ledger = self.limbo()
        assert self.ask(recover(ledger, entry=0)) == EOK
        return ledger

    def ask(self, part: Message, *, version: int = 3, priority: int = 0) -> Outcome:
        """Return the status of a V3 request."""
        operation, name = OPERATIONS[type(part)]
        return self.bare(operation, version=version, priority=priority, **{name: part})

    def bare(self, operation: int, **parts: Any) -> Outcome:
        """Return the status of an operation given by its number, with any parts."""
        with Wire(self.port) as wire:
            try:
                return status(wire.ask(operation, **parts))
            except ConnectionError:
                return CLOSED

    def ask_v2(self, request: v2.Request) -> Outcome:
        """Return the code of a V2 request, as V3 numbers it."""
        with Wire(self.port) as wire:
            try:
                return V3_BY_V2[wire.ask_v2(request).code]
            except ConnectionError:
                return CLOSED


def sealed(ledger: int, entry: int) -> bytes:
    """Return an entry as it is stored."""
    return DIGEST.seal(ledger, entry, b"x", lac=entry - 1, length=entry + 1)


def add(ledger: int, entry: int = 3, key: bytes = KEY, **fields: Any) -> pb.AddRequest:
    """Make an AddRequest."""
    return pb.AddRequest(ledgerId=ledger, entryId=entry, masterKey=key, body=sealed(ledger, entry), **fields)


def recover(ledger: int, key: bytes = KEY, entry: int = 3) -> pb.AddRequest:
    """Make an AddRequest of a recovery."""
    return add(ledger, entry, key=key, flag=pb.AddRequest.RECOVERY_ADD)


def read(ledger: int, entry: int = 0, **fields: Any) -> pb.ReadRequest:
    """Make a ReadRequest."""
    return pb.ReadRequest(ledgerId=ledger, entryId=entry, **fields)


def fence(ledger: int, entry: int = LAST, key: bytes | None = KEY) -> pb.ReadRequest:
    """Make a fencing ReadRequest."""
    return read(ledger, entry, masterKey=key, flag=pb.ReadRequest.FENCE_LEDGER)


def poll(ledger: int, previous: int, entry: int = LAST, timeout_ms: int | None = 20) -> pb.ReadRequest:
    """Make a ReadRequest that waits for the LAC and wants the next entry."""
    return read(ledger, entry, previousLAC=previous, timeOut=timeout_ms, flag=pb.ReadRequest.ENTRY_PIGGYBACK)


def write_lac(ledger: int, key: bytes = KEY) -> pb.WriteLacRequest:
    """Make a WriteLacRequest of LAC 1."""
    return pb.WriteLacRequest(ledgerId=ledger, lac=1, masterKey=key, body=DIGEST.seal_lac(ledger, 1))


def read_lac(ledger: int) -> pb.ReadLacRequest:
    """Make a ReadLacRequest."""
    return pb.ReadLacRequest(ledgerId=ledger)


def force(ledger: int) -> pb.ForceLedgerRequest:
    """Make a ForceLedgerRequest."""
    return pb.ForceLedgerRequest(ledgerId=ledger)


def list_entries(ledger: int) -> pb.GetListOfEntriesOfLedgerRequest:
    """Make a GetListOfEntriesOfLedgerRequest."""
    return pb.GetListOfEntriesOfLedgerRequest(ledgerId=ledger)


def info(_: int) -> pb.GetBookieInfoRequest:
    """Make a GetBookieInfoRequest."""
    return pb.GetBookieInfoRequest(requested=3)


def batch(ledger: int, start: int = 0, **fields: Any) -> pb.BatchReadRequest:
    """Make a BatchReadRequest."""
    return pb.BatchReadRequest(ledgerId=ledger, startEntryId=start, maxCount=10, maxSize=1 << 20, **fields)


def unknown_operation(bookie: Bookie) -> Outcome:
    """Send an operation of an unknown number. The connection is taken for V2, which does not have it either."""
    with Wire(bookie.port) as wire:
        wire.sock.sendall(bytes.fromhex("000000080a060803100e1801"))
        try:
            return status(wire.receive())
        except ConnectionError:
            return CLOSED


@dataclass(frozen=True, slots=True)
class Case:
    """A request about a ledger in a state of `Bookie`, with the status from Java's bookie and ours (None: the same)."""

    name: str
    state: Callable[[Bookie], int]
    request: Callable[[int], Message | v2.Request]
    java: Outcome
    ours: Outcome | None = None
    why: str = ""
    version: int = 3
    priority: int = 0

    def run(self, bookie: Bookie) -> Outcome:
        """Return the status that this bookie gives, as V3 numbers it."""
        request = self.request(self.state(bookie))
        if isinstance(request, v2.Request):
            return bookie.ask_v2(request)
        return bookie.ask(request, version=self.version, priority=self.priority)


@dataclass(frozen=True, slots=True)
class Odd:
    """A case whose request is malformed, or whose answer needs more than waiting for."""

    name: str
    run: Callable[[Bookie], Outcome]
    java: Outcome
    ours: Outcome | None = None
    why: str = ""


UNKNOWN, FILLED, FENCED, EMPTY, EXPLICIT = Bookie.unknown, Bookie.filled, Bookie.fenced, Bookie.empty, Bookie.explicit
CLOSES = "upstream fails on the missing part and closes"
EXTENDS = "an extension of ours"


def adds_v3() -> list[Case | Odd]:
    """Return the cases of ADD_ENTRY on a writable bookie."""
    return [
        Case("new ledger", UNKNOWN, add, EOK),
        Case("again", FILLED, lambda ledger: add(ledger, 0), EOK),
        Case("deferred sync", UNKNOWN, lambda ledger: add(ledger, writeFlags=1), EOK),
        Case("wrong key", FILLED, lambda ledger: add(ledger, key=OTHER_KEY), EUA),
        Case("key of zeros", FILLED, lambda ledger: add(ledger, key=bytes(20)), EUA),
        Case("recovery, wrong key", FILLED, lambda ledger: recover(ledger, OTHER_KEY), EUA),
        Case("fenced", FENCED, add, EFENCED),
        Case("fenced, deferred sync", FENCED, lambda ledger: add(ledger, writeFlags=1), EFENCED),
        Case("fenced, priority", FENCED, add, EFENCED, priority=PRIORITY),
        Case("fenced, recovery", FENCED, recover, EOK),
        Case("fenced before its first entry", EMPTY, add, EFENCED),
        Case("version 2", UNKNOWN, add, EBADVERSION, version=2),
        Odd("without its part", lambda bookie: bookie.bare(pb.ADD_ENTRY), CLOSED, EBADREQ, CLOSES),
    ]


def reads_v3() -> list[Case | Odd]:
    """Return the cases of READ_ENTRY on a writable bookie: plain, fencing and waiting."""
    return [
        Case("stored", FILLED, read, EOK),
        Case("last", FILLED, lambda ledger: read(ledger, LAST), EOK),
        Case("unknown ledger", UNKNOWN, read, ENOLEDGER),
        Case("last, unknown ledger", UNKNOWN, lambda ledger: read(ledger, LAST), ENOLEDGER),
        Case("no such entry", FILLED, lambda ledger: read(ledger, 9), ENOENTRY),
        Case("last, empty ledger", EMPTY, lambda ledger: read(ledger, LAST), ENOENTRY),
        Case("wrong key", FILLED, lambda ledger: read(ledger, masterKey=OTHER_KEY), EOK),
        Case("fenced", FENCED, read, EOK),
        Case("version 2", FILLED, read, EBADVERSION, version=2),
        Odd("without its part", lambda bookie: bookie.bare(pb.READ_ENTRY), CLOSED, EBADREQ, CLOSES),
        Case("fence", FILLED, fence, EOK),
        Case("fence, again", FENCED, lambda ledger: fence(ledger, 0), EOK),
        Case("fence, unknown ledger", UNKNOWN, fence, ENOENTRY),
        Case("fence, no key", FILLED, lambda ledger: fence(ledger, key=None), EUA),
        Case("fence, wrong key", FILLED, lambda ledger: fence(ledger, key=OTHER_KEY), EUA),
        Case("fence, key of zeros", FILLED, lambda ledger: fence(ledger, key=bytes(20)), EUA),
        Case("fence, version 2", FILLED, fence, EBADVERSION, version=2),
        Case("poll, unknown ledger", UNKNOWN, lambda ledger: poll(ledger, 0), ENOLEDGER),
        Case("poll, LAC is higher", FILLED, lambda ledger: poll(ledger, -1), EOK),
        Case("poll, time ends", FILLED, lambda ledger: poll(ledger, 5), EOK),
        Case("poll, without a time", FILLED, lambda ledger: poll(ledger, 5, timeout_ms=None), EOK),
        Case("poll, for an entry", FILLED, lambda ledger: poll(ledger, 0, entry=1), EBADREQ),
        Case("poll, version 2", FILLED, lambda ledger: poll(ledger, 0), EBADVERSION, version=2),
    ]


def others_v3() -> list[Case | Odd]:
    """Return the cases of all other operations of V3 on a writable bookie."""
    return [
        Case("write LAC, new ledger", UNKNOWN, write_lac, EOK),
        Case("write LAC, fenced", FENCED, write_lac, EOK),
        Case("write LAC, wrong key", FILLED, lambda ledger: write_lac(ledger, OTHER_KEY), EUA),
        Case("write LAC, version 2", FILLED, write_lac, EBADVERSION, version=2),
        Case("read LAC", FILLED, read_lac, EOK),
        Case("read LAC, unknown ledger", UNKNOWN, read_lac, ENOENTRY),
        Case("read LAC, empty ledger", EMPTY, read_lac, ENOENTRY),
        Case("read LAC, no entry", EXPLICIT, read_lac, EIO, EOK, "upstream misses the entry although the LAC is there"),
        Case("read LAC, version 2", FILLED, read_lac, EBADVERSION, version=2),
        Case("force", FILLED, force, EOK),
        Case("force, unknown ledger", UNKNOWN, force, EOK),
        Case("force, fenced", FENCED, force, EOK),
        Case("force, version 2", FILLED, force, EBADVERSION, version=2),
        Case("bookie info", UNKNOWN, info, EOK),
        Case("bookie info, version 2", UNKNOWN, info, EBADVERSION, version=2),
        Case("list of entries, unknown ledger", UNKNOWN, list_entries, ENOLEDGER),
        Odd("range read", lambda bookie: bookie.bare(pb.RANGE_READ_ENTRY), EBADREQ),
        Odd("range add", lambda bookie: bookie.bare(pb.RANGE_ADD_ENTRY), EBADREQ),
        Case("authentication", UNKNOWN, lambda _: pb.AuthMessage(authPluginName="any", payload=b""), EOK),
        Case("START_TLS", UNKNOWN, lambda _: pb.StartTLSRequest(), EBADREQ),
        Odd("unknown operation", unknown_operation, CLOSED),
        Case("batch read", FILLED, batch, EBADREQ, EOK, EXTENDS),
        Case("batch read, unknown ledger", UNKNOWN, batch, EBADREQ, ENOLEDGER, EXTENDS),
        Case("batch read, no such entry", FILLED, lambda ledger: batch(ledger, 9), EBADREQ, ENOENTRY, EXTENDS),
        Case("batch read, version 2", FILLED, batch, EBADREQ, EBADVERSION, EXTENDS, version=2),
    ]


def reads_v2(op: int, name: str) -> list[Case | Odd]:
    """Return the cases of READ or BATCH_READ in V2."""

    def got(ledger: int, **fields: Any) -> v2.Request:
        return v2.Request(op, ledger=ledger, count_max=10, size_max=1 << 20, **fields)

    return [
        Case(name, FILLED, got, EOK),
        Case(f"{name}, unknown ledger", UNKNOWN, got, ENOLEDGER),
        Case(f"{name}, no such entry", FILLED, lambda ledger: got(ledger, entry=9), ENOENTRY),
        Case(f"{name}, version 3", FILLED, lambda ledger: got(ledger, version=3), EBADVERSION),
        Case(f"{name}, fence", FILLED, lambda ledger: got(ledger, flags=1, key=KEY), EOK),
        Case(f"{name}, fence, wrong key", FILLED, lambda ledger: got(ledger, flags=1, key=OTHER_KEY), EUA),
        Case(f"{name}, fence, version 1", FILLED, lambda ledger: got(ledger, flags=1, version=1), EUA),
    ]


def requests_v2() -> list[Case | Odd]:
    """Return the cases of V2 on a writable bookie."""

    def added(ledger: int, **fields: Any) -> v2.Request:
        return v2.Request(v2.ADD, **{"key": KEY, "body": sealed(ledger, 3), **fields})

    table: list[Case | Odd] = [
        Case("add, new ledger", UNKNOWN, added, EOK),
        Case("add, version 0", UNKNOWN, lambda ledger: added(ledger, version=0), EOK),
        Case("add, wrong key", FILLED, lambda ledger: added(ledger, key=OTHER_KEY), EUA),
        Case("add, fenced", FENCED, added, EFENCED),
        Case("add, fenced, recovery", FENCED, lambda ledger: added(ledger, flags=v2.RECOVERY_ADD), EOK),
        Case("add, version 3", UNKNOWN, lambda ledger: added(ledger, version=3), EBADVERSION),
        Case("add, short", UNKNOWN, lambda ledger: added(ledger, body=struct.pack(">qqi", ledger, 0, 0)), EBADREQ),
    ]
    for op, name in ((v2.READ, "read"), (v2.BATCH_READ, "batch read")):
        table += reads_v2(op, name)
    return table


def read_only() -> list[Case | Odd]:
    """Return the cases of both protocols on a bookie that is read-only."""

    def added(ledger: int, flags: int = 0) -> v2.Request:
        return v2.Request(v2.ADD, flags=flags, key=KEY, body=sealed(ledger, 3))

    return [
        Case("add", FILLED, add, EREADONLY),
        Case("add, recovery", FILLED, recover, EREADONLY),
        Case("add, priority", FILLED, add, EOK, priority=PRIORITY),
        Case("add, version 2", FILLED, add, EBADVERSION, version=2),
        Case("read", FILLED, read, EOK),
        Case("fence", FILLED, fence, EOK),
        Case("fenced, recovery, priority", FENCED, recover, EOK, priority=PRIORITY),
        Case("write LAC", FILLED, write_lac, EREADONLY),
        Case("write LAC, priority", FILLED, write_lac, EREADONLY, priority=PRIORITY),
        Case("force", FILLED, force, EOK),
        Case("V2 add", FILLED, added, EREADONLY),
        Case("V2 add, recovery", FILLED, lambda ledger: added(ledger, v2.RECOVERY_ADD), EREADONLY),
        Case("V2 add, priority", FILLED, lambda ledger: added(ledger, v2.HIGH_PRIORITY), EOK),
    ]


def limbo() -> list[Case | Odd]:
    """Return cases of both protocols on ledgers in limbo, which a start after a crash without a journal also fences."""
    empty, recovered = Bookie.limbo, Bookie.recovered

    def asked(ledger: int, op: int = v2.READ, **fields: Any) -> v2.Request:
        return v2.Request(op, ledger=ledger, count_max=10, size_max=1 << 20, **fields)

    def added(ledger: int, flags: int = 0) -> v2.Request:
        return v2.Request(v2.ADD, flags=flags, key=KEY, body=sealed(ledger, 3))

    unknown: tuple[Outcome, Outcome, str] = (EUNKNOWNLEDGERSTATE, EIO, "upstream's V2 clients do not know the code")
    no_entry: tuple[Outcome, Outcome, str] = (ENOENTRY, EUNKNOWNLEDGERSTATE, "upstream denies what it does not know")
    no_lac: tuple[Outcome, Outcome, str] = (EUNKNOWNLEDGERSTATE, EOK, "upstream serves no entry without a maxLAC")
    return [
        Case("add", empty, add, EFENCED),
        Case("add, priority", empty, add, EFENCED, priority=PRIORITY),
        Case("add, wrong key", recovered, lambda ledger: add(ledger, key=OTHER_KEY), EUA),
        Case("add, recovery", empty, recover, EOK),
        Case("read", recovered, read, *no_lac),
        Case("read, no such entry", recovered, lambda ledger: read(ledger, 9), EUNKNOWNLEDGERSTATE),
        Case("read, last", recovered, lambda ledger: read(ledger, LAST), EUNKNOWNLEDGERSTATE),
        Case("read, last, no entry", empty, lambda ledger: read(ledger, LAST), EUNKNOWNLEDGERSTATE),
        Case("fence", empty, fence, EUNKNOWNLEDGERSTATE),
        Case("fence, stored", recovered, lambda ledger: fence(ledger, 0), EOK),
        Case("fence, wrong key", recovered, lambda ledger: fence(ledger, key=OTHER_KEY), EUA),
        Case("poll", recovered, lambda ledger: poll(ledger, -1), EUNKNOWNLEDGERSTATE),
        Case("write LAC", empty, write_lac, EOK),
        Case("read LAC", recovered, read_lac, *no_entry),
        Case("read LAC, no entry", empty, read_lac, *no_entry),
        Case("force", empty, force, EOK),
        Case("V2 add", empty, added, EFENCED),
        Case("V2 add, recovery", empty, lambda ledger: added(ledger, v2.RECOVERY_ADD), EOK),
        Case("V2 read", recovered, asked, EOK),
        Case("V2 read, no such entry", recovered, lambda ledger: asked(ledger, entry=9), *unknown),
        Case("V2 read, last", recovered, lambda ledger: asked(ledger, entry=LAST), *unknown),
        Case("V2 fence", empty, lambda ledger: asked(ledger, entry=LAST, flags=1, key=KEY), *unknown),
        Case("V2 batch read", recovered, lambda ledger: asked(ledger, v2.BATCH_READ), EOK),
        Case("V2 batch read, no such entry", recovered, lambda ledger: asked(ledger, v2.BATCH_READ, entry=9), *unknown),
    ]


def wrong(bookie: Bookie, kind: str, cases: list[Case | Odd]) -> list[str]:
    """Return what a bookie of that kind ("java" or "ours") answers differently from the table, in one line each."""
    found = []
    for case in cases:
        expected = case.java if kind == "java" or case.ours is None else case.ours
        outcome = case.run(bookie)
        if outcome != expected:
            found.append(f"{case.name}: {outcome}, not {expected}")
    return found
