"""Protocol V3 for peers that do as they like: requests and answers are messages of the protobuf library.

Used by one thread at a time.
"""

import struct
from collections.abc import Mapping
from itertools import count
from typing import Any

from bookie.pb import wire_pb2 as wire
from tests.hostile.peer import KEY, Peer, entry_of

PARTS = {
    wire.READ_ENTRY: "read",
    wire.ADD_ENTRY: "add",
    wire.AUTH: "auth",
    wire.WRITE_LAC: "writeLac",
    wire.READ_LAC: "readLac",
    wire.GET_BOOKIE_INFO: "getBookieInfo",
    wire.START_TLS: "startTLS",
    wire.FORCE_LEDGER: "forceLedger",
    wire.GET_LIST_OF_ENTRIES_OF_LEDGER: "getListOfEntriesOfLedger",
    wire.BATCH_READ_ENTRY: "batchRead",
    wire.WRITE_CLOSE: "writeClose",
}
"""What an operation's messages are called: with "Request" and "Response" behind it."""

FENCE, PIGGYBACK = 1, 2
RECOVERY = 1
DEFERRED_SYNC = 1
_transactions = count(1)


def request(
    operation: int, fields: Mapping[str, Any] | None = None, *, version: int = 3, priority: int = 0
) -> wire.Request:
    """A request with a transaction id of its own; without `fields` it lacks the message of its operation."""
    message = wire.Request()
    message.header.version = version  # type: ignore[assignment]
    message.header.operation = operation  # type: ignore[assignment]
    message.header.txnId = next(_transactions)
    if priority:
        message.header.priority = priority
    if fields is not None:
        part = getattr(message, PARTS[operation] + "Request")  # type: ignore[index]
        part.SetInParent()
        for name, value in fields.items():
            setattr(part, name, value)
    return message


def add3(ledger: int, entry: int, payload: bytes = b"", *, lac: int = -1, **more: Any) -> wire.Request:
    """An add of `entry_of`; `more` are fields of the message, `version` or `priority`."""
    header = {name: more.pop(name) for name in ("version", "priority") if name in more}
    body = entry_of(ledger, entry, payload, lac=lac)
    fields = {"ledgerId": ledger, "entryId": entry, "masterKey": KEY, "body": body} | more
    return request(wire.ADD_ENTRY, fields, **header)


def read3(ledger: int, entry: int, *, version: int = 3, **fields: Any) -> wire.Request:
    """A read; `flag=FENCE, masterKey=...` makes it a fencing one, `previousLAC`, `timeOut` and PIGGYBACK a poll."""
    return request(wire.READ_ENTRY, {"ledgerId": ledger, "entryId": entry} | fields, version=version)


def batch3(ledger: int, start: int, *, version: int = 3, **fields: Any) -> wire.Request:
    """A batch read."""
    wanted = {"ledgerId": ledger, "startEntryId": start, "maxCount": 0, "maxSize": 1 << 20}
    return request(wire.BATCH_READ_ENTRY, wanted | fields, version=version)


def packet(ledger: int, lac: int) -> bytes:
    """An explicit LAC as clients send it, with a digest that no bookie looks at."""
    return struct.pack(">qqi", ledger, lac, 0)


def write_lac(ledger: int, lac: int, *, version: int = 3, **fields: Any) -> wire.Request:
    """An explicit LAC."""
    wanted = {"ledgerId": ledger, "lac": lac, "masterKey": KEY, "body": packet(ledger, lac)}
    return request(wire.WRITE_LAC, wanted | fields, version=version)


def read_lac(ledger: int, *, version: int = 3) -> wire.Request:
    """The explicit LAC and the last entry."""
    return request(wire.READ_LAC, {"ledgerId": ledger}, version=version)


def force(ledger: int, *, version: int = 3) -> wire.Request:
    """A sync of all that came before."""
    return request(wire.FORCE_LEDGER, {"ledgerId": ledger}, version=version)


def write_close(ledger: int, *, key: bytes = KEY, version: int = 3) -> wire.Request:
    """The announcement that nothing follows."""
    return request(wire.WRITE_CLOSE, {"ledgerId": ledger, "masterKey": key}, version=version)


def send(peer: Peer, *requests: wire.Request) -> None:
    """Whole frames in one write."""
    bodies = [message.SerializePartialToString() for message in requests]
    peer.sock.sendall(b"".join(struct.pack(">i", len(body)) + body for body in bodies))


def answer(peer: Peer) -> wire.Response:
    """The next answer."""
    (size,) = struct.unpack(">i", peer.take(4))
    return wire.Response.FromString(peer.take(size))


def ask(peer: Peer, message: wire.Request) -> wire.Response:
    """One request and its answer, which must echo transaction and operation."""
    send(peer, message)
    response = answer(peer)
    assert response.header.txnId == message.header.txnId
    assert response.header.operation == message.header.operation
    return response


def part(response: wire.Response) -> Any:
    """The operation's own message, whose status is that of the whole."""
    name = PARTS[response.header.operation] + "Response"
    assert response.HasField(name)
    found = getattr(response, name)
    assert found.status == response.status
    return found
