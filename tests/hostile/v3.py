"""Protocol V3 for hostile peers: requests and responses are messages of the protobuf library.

One thread at a time.
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
"""The name of an operation's messages, without "Request" and "Response"."""

FENCE, PIGGYBACK = 1, 2
RECOVERY = 1
DEFERRED_SYNC = 1
_transactions = count(1)


def request(
    operation: int, fields: Mapping[str, Any] | None = None, *, version: int = 3, priority: int = 0
) -> wire.Request:
    """Return a request with its own transaction id; without `fields` it lacks the message of its operation."""
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
    """Return an add of `entry_of`; `more` are fields of the message, `version` or `priority`."""
    header = {name: more.pop(name) for name in ("version", "priority") if name in more}
    body = entry_of(ledger, entry, payload, lac=lac)
    fields = {"ledgerId": ledger, "entryId": entry, "masterKey": KEY, "body": body} | more
    return request(wire.ADD_ENTRY, fields, **header)


def read3(ledger: int, entry: int, *, version: int = 3, **fields: Any) -> wire.Request:
    """Return a read; `flag=FENCE, masterKey=...` makes it fencing; `previousLAC`, `timeOut` and PIGGYBACK a poll."""
    return request(wire.READ_ENTRY, {"ledgerId": ledger, "entryId": entry} | fields, version=version)


def batch3(ledger: int, start: int, *, version: int = 3, **fields: Any) -> wire.Request:
    """Return a batch read."""
    wanted = {"ledgerId": ledger, "startEntryId": start, "maxCount": 0, "maxSize": 1 << 20}
    return request(wire.BATCH_READ_ENTRY, wanted | fields, version=version)


def packet(ledger: int, lac: int) -> bytes:
    """Return an explicit LAC as clients send it, with a digest that no bookie verifies."""
    return struct.pack(">qqi", ledger, lac, 0)


def write_lac(ledger: int, lac: int, *, version: int = 3, **fields: Any) -> wire.Request:
    """Return a write of an explicit LAC."""
    wanted = {"ledgerId": ledger, "lac": lac, "masterKey": KEY, "body": packet(ledger, lac)}
    return request(wire.WRITE_LAC, wanted | fields, version=version)


def read_lac(ledger: int, *, version: int = 3) -> wire.Request:
    """Return a read of the explicit LAC and the last entry."""
    return request(wire.READ_LAC, {"ledgerId": ledger}, version=version)


def force(ledger: int, *, version: int = 3) -> wire.Request:
    """Return a force, which syncs everything that came before."""
    return request(wire.FORCE_LEDGER, {"ledgerId": ledger}, version=version)


def write_close(ledger: int, *, key: bytes = KEY, version: int = 3) -> wire.Request:
    """Return a write close."""
    return request(wire.WRITE_CLOSE, {"ledgerId": ledger, "masterKey": key}, version=version)


def send(peer: Peer, *requests: wire.Request) -> None:
    """Send complete frames in one write."""
    bodies = [message.SerializePartialToString() for message in requests]
    peer.sock.sendall(b"".join(struct.pack(">i", len(body)) + body for body in bodies))


def answer(peer: Peer) -> wire.Response:
    """Return the next response."""
    (size,) = struct.unpack(">i", peer.take(4))
    return wire.Response.FromString(peer.take(size))


def ask(peer: Peer, message: wire.Request) -> wire.Response:
    """Send one request and return its response, which must echo transaction and operation."""
    send(peer, message)
    response = answer(peer)
    assert response.header.txnId == message.header.txnId
    assert response.header.operation == message.header.operation
    return response


def part(response: wire.Response) -> Any:
    """Return the operation's own message, whose status is that of the response."""
    name = PARTS[response.header.operation] + "Response"
    assert response.HasField(name)
    found = getattr(response, name)
    assert found.status == response.status
    return found
