"""V3 answers as the protobuf library writes them: the oracle of `bookie._fast.wire.v3_answers`."""

from bookie.pb import wire_pb2 as pb
from tests.reference.proto_wire import BYTES, encode, field, tag

PARTS: dict[int, str] = {
    pb.READ_ENTRY: "readResponse",
    pb.ADD_ENTRY: "addResponse",
    pb.WRITE_LAC: "writeLacResponse",
    pb.READ_LAC: "readLacResponse",
    pb.GET_BOOKIE_INFO: "getBookieInfoResponse",
    pb.START_TLS: "startTLSResponse",
    pb.FORCE_LEDGER: "forceLedgerResponse",
    pb.GET_LIST_OF_ENTRIES_OF_LEDGER: "getListOfEntriesOfLedgerResponse",
    pb.BATCH_READ_ENTRY: "batchReadResponse",
    pb.WRITE_CLOSE: "writeCloseResponse",
}


def framed(message: bytes) -> bytes:
    """Return a message after its length word."""
    return len(message).to_bytes(4) + message


def refusal(version: int, op: int, txn: int, priority: int, code: int) -> bytes:
    """Return the header of a request, copied, and a status."""
    message = pb.Response(header={"version": version, "operation": op, "txnId": txn}, status=pb.StatusCode.Name(code))
    if priority:
        message.header.priority = priority
    return framed(message.SerializeToString())


def answer(op: int, txn: int, code: int, **fields: int | bytes | None) -> bytes:
    """Return the operation's own answer with the fields that its message has."""
    message = pb.Response(header={"version": 3, "operation": op, "txnId": txn}, status=pb.StatusCode.Name(code))
    part = getattr(message, PARTS[op])
    part.SetInParent()
    names = {known.name for known in part.DESCRIPTOR.fields}
    for name, value in {"status": code, **fields}.items():
        if name in names and value is not None:
            setattr(part, name, value)
    return framed(message.SerializeToString())


def entry_prefix(size: int) -> bytes:
    """Return what precedes an entry of a batch: three bytes of length, and more only when they do not suffice."""
    return tag(4, BYTES) + encode(size, 3)


def batch(txn: int, ledger: int, start: int, entries: list[bytes], **tail: int | None) -> bytes:
    """Return a successful batch read, with padded lengths before its entries."""
    part = field(1, 0) + field(2, ledger) + field(3, start)
    part += b"".join(entry_prefix(len(entry)) + entry for entry in entries)
    for number, name in ((5, "maxLAC"), (6, "lacUpdateTimestamp")):
        value = tail.get(name)
        part += b"" if value is None else field(number, value)
    header = field(1, 3) + field(2, pb.BATCH_READ_ENTRY) + field(3, txn)
    return framed(field(1, header) + field(2, 0) + field(109, part))
