"""V3 requests in plain Python through the protobuf library: the oracle of `bookie._fast.wire.v3`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from google.protobuf.message import DecodeError

from bookie.pb import wire_pb2 as pb

OK, BAD_REQUEST, CORRUPT = 0, 4, 13
"""What a frame leads to: it is served, answered with EBADREQ, or V2."""
FENCE, RECOVERY_ADD, HIGH_PRIORITY, PIGGYBACK, DEFERRED_SYNC, LONG_POLL, TIMED = 1, 2, 4, 0x100, 0x200, 0x400, 0x800
PARTS: dict[int, str] = {
    pb.READ_ENTRY: "readRequest",
    pb.ADD_ENTRY: "addRequest",
    pb.AUTH: "authRequest",
    pb.WRITE_LAC: "writeLacRequest",
    pb.READ_LAC: "readLacRequest",
    pb.GET_BOOKIE_INFO: "getBookieInfoRequest",
    pb.START_TLS: "startTLSRequest",
    pb.FORCE_LEDGER: "forceLedgerRequest",
    pb.GET_LIST_OF_ENTRIES_OF_LEDGER: "getListOfEntriesOfLedgerRequest",
    pb.BATCH_READ_ENTRY: "batchReadRequest",
    pb.WRITE_CLOSE: "writeCloseRequest",
}


@dataclass(frozen=True)
class Request:
    """A request as the server understands it."""

    version: int
    op: int
    flags: int = 0
    priority: int = 0
    ledger: int = 0
    entry: int = 0
    request_id: int = 0
    count_max: int = 0
    size_max: int = 0
    previous_lac: int = 0
    timeout_ms: int = 0
    argument: int = 0
    key: bytes | None = None
    body: bytes | None = None


def parse_message(data: bytes) -> pb.Request | None:
    """Return the message, or None when the library refuses it."""
    message = pb.Request()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return None
    return message if message.IsInitialized() else None


def _reading(part: pb.ReadRequest | pb.BatchReadRequest) -> tuple[int, dict[str, int]]:
    """Return flags and numbers that a single and a batch read share."""
    flags = {0: 0, 1: FENCE, 2: PIGGYBACK}[part.flag if part.HasField("flag") else 0]
    if part.HasField("previousLAC"):
        flags |= LONG_POLL
    if part.HasField("timeOut"):
        flags |= TIMED
    return flags, {"previous_lac": part.previousLAC, "timeout_ms": part.timeOut}


def _fields(message: pb.Request, op: int) -> tuple[int, dict[str, Any]]:
    """Return flags and fields of the operation's own message."""
    part = getattr(message, PARTS[op])
    names = {field.name for field in part.DESCRIPTOR.fields}
    fields: dict[str, Any] = {"ledger": part.ledgerId} if "ledgerId" in names else {}
    fields["key"] = part.masterKey if "masterKey" in names and part.HasField("masterKey") else None
    if op == pb.READ_ENTRY:
        flags, numbers = _reading(part)
        return flags, fields | numbers | {"entry": part.entryId}
    if op == pb.BATCH_READ_ENTRY:
        flags, numbers = _reading(part)
        numbers |= {"entry": part.startEntryId, "count_max": part.maxCount, "size_max": part.maxSize}
        return flags, fields | numbers
    if op == pb.ADD_ENTRY:
        flags = RECOVERY_ADD if part.HasField("flag") else DEFERRED_SYNC if part.writeFlags & 1 else 0
        return flags, fields | {"entry": part.entryId, "body": part.body}
    if op == pb.WRITE_LAC:
        return 0, fields | {"argument": part.lac, "body": part.body}
    if op == pb.GET_BOOKIE_INFO:
        return 0, fields | {"argument": part.requested}
    return 0, fields


def decode_request(data: bytes) -> tuple[int, Request | None]:
    """Return what becomes of the body of a frame. The body of AUTH is left out: it is the bytes as they came."""
    message = parse_message(data)
    if message is None:
        return CORRUPT, None
    header = message.header
    flags = HIGH_PRIORITY if header.priority else 0
    common: dict[str, Any] = {"priority": header.priority, "request_id": header.txnId}
    if header.operation not in PARTS or not message.HasField(PARTS[header.operation]):
        return BAD_REQUEST, Request(header.version, header.operation, flags, **common)
    more, fields = _fields(message, header.operation)
    return OK, Request(header.version, header.operation, flags | more, **common, **fields)


def agrees(data: bytes, status: int, fields: Mapping[str, Any]) -> bool:
    """Return whether what a parser made of `data` is what the library makes of it."""
    expected, request = decode_request(data)
    if request is None or status != expected:
        return status == expected
    body = fields["body"]
    if status == OK and request.op == pb.AUTH:
        message = parse_message(data)
        whole = body is None or (message is not None and pb.AuthMessage.FromString(body) == message.authRequest)
        return whole and {**fields, "body": None} == asdict(request)
    return fields == asdict(request)
