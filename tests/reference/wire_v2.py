"""V2 frames in plain Python, after docs/formats/wire-v2.md: the oracle of `_fast.wire.v2` and `client.framing_v2`."""

import struct
from dataclasses import dataclass

ADD, READ, AUTH, BATCH_READ = 1, 2, 3, 7
START_TLS = 9
"""Of V3; Java's bookie answers it a second time inside TLS to whoever is not authenticated by then."""
V3_HEADER_TAG, V3_START_TLS = 0x0A, b"\x08\x03\x10\x09"
FENCE, RECOVERY_ADD, HIGH_PRIORITY = 1, 2, 4
OK, BAD_REQUEST, CLOSED = 0, 4, 18
"""What a frame leads to: it is served, answered with EBADREQ, or ends the connection."""


@dataclass(frozen=True)
class Request:
    """A request as the server understands it."""

    op: int
    version: int = 2
    flags: int = 0
    ledger: int = 0
    entry: int = 0
    request_id: int = 0
    count_max: int = 0
    size_max: int = 0
    key: bytes | None = None
    body: bytes | None = None


@dataclass(frozen=True)
class Response:
    """An answer as the client understands it. AUTH has only a body."""

    op: int
    code: int = 0
    ledger: int = 0
    entry: int = 0
    request_id: int = 0
    body: bytes = b""
    version: int = 2


def header(version: int, op: int, flags: int = 0) -> bytes:
    """Return the packet header word."""
    return struct.pack(">I", op if version == 0 else version << 24 | op << 16 | flags)


def framed(body: bytes) -> bytes:
    """Return a body after its length word."""
    return struct.pack(">I", len(body)) + body


def encode_request(r: Request) -> bytes:
    """Return the whole frame of a request."""
    key, body = r.key or b"", r.body or b""
    rest = {
        ADD: key + body,
        READ: struct.pack(">qq", r.ledger, r.entry) + key,
        AUTH: body,
        BATCH_READ: struct.pack(">qqqiq", r.ledger, r.entry, r.request_id, r.count_max, r.size_max) + key,
    }[r.op]
    return framed(header(r.version, r.op, r.flags) + rest)


def decode_header(body: bytes) -> tuple[int, int, int]:
    """Return version, operation and flags of a body of at least 4 bytes."""
    (word,) = struct.unpack_from(">I", body)
    if word >> 24 == 0:
        return 0, word & 0xFF, 0
    return word >> 24, word >> 16 & 0xFF, word & 0xFFFF


def decode_request(body: bytes) -> tuple[int, Request | None]:
    """Return what becomes of the body of a frame, without a request when the connection ends."""
    if len(body) < 4:
        return CLOSED, None
    version, op, flags = decode_header(body)
    flags &= FENCE | RECOVERY_ADD | HIGH_PRIORITY
    if op == AUTH:
        return OK, Request(op, version, flags, body=body[4:])
    if op == ADD:
        return _decode_add(body, version, flags)
    if op not in (READ, BATCH_READ):
        return CLOSED, None
    fixed = 20 if op == READ else 40
    key = body[fixed : fixed + 20] if flags & FENCE and 2 <= version < 128 else None
    if len(body) < fixed or (key is not None and len(key) < 20):
        return CLOSED, None
    fields = struct.unpack_from(">qq" if op == READ else ">qqqiq", body, 4)
    names = ("ledger", "entry", "request_id", "count_max", "size_max")
    return OK, Request(op, version, flags, key=key, **dict(zip(names, fields, strict=False)))


def _decode_add(body: bytes, version: int, flags: int) -> tuple[int, Request | None]:
    entry = body[24:]
    if len(entry) < 16:
        return CLOSED, None
    ledger, entry_id = struct.unpack_from(">qq", entry)
    storable = ledger >= 0 and 0 <= entry_id <= (1 << 63) - 2
    status = OK if len(entry) >= 24 and storable else BAD_REQUEST
    return status, Request(ADD, version, flags, ledger, entry_id, key=body[4:24], body=entry)


def encode_response(r: Response) -> bytes:
    """Return the whole frame of an answer."""
    fields = struct.pack(">iqq", r.code, r.ledger, r.entry) if r.op != AUTH else b""
    request_id = struct.pack(">q", r.request_id) if r.op == BATCH_READ else b""
    return framed(header(r.version, r.op) + fields + request_id + r.body)


def decode_response(body: bytes) -> Response | None:
    """Return an answer, or None when it breaks the format."""
    if len(body) < 4:
        return None
    version, op, _ = decode_header(body)
    if body[0] == V3_HEADER_TAG and body[2:6] == V3_START_TLS:
        return Response(START_TLS, body=body[4:], version=version)
    if op == AUTH:
        return Response(op, body=body[4:], version=version)
    fixed = {ADD: 24, READ: 24, BATCH_READ: 32}.get(op)
    if fixed is None or len(body) < fixed:
        return None
    code, ledger, entry = struct.unpack_from(">iqq", body, 4)
    request_id = struct.unpack_from(">q", body, 24)[0] if op == BATCH_READ else 0
    return Response(op, code, ledger, entry, request_id, body[fixed:], version)


def cut(stream: bytes, frame_bytes_max: int) -> tuple[list[bytes], int] | None:
    """Return the bodies of the whole frames of a stream and their total size, or None if a length is impossible."""
    bodies, at = [], 0
    while len(stream) - at >= 4:
        (length,) = struct.unpack_from(">I", stream, at)
        if length > frame_bytes_max - 4:
            return None
        if length > len(stream) - at - 4:
            break
        bodies.append(stream[at + 4 : at + 4 + length])
        at += 4 + length
    return bodies, at
