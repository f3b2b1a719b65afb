"""Adds in protocol V3, encoded by hand without code of the bookie or a protobuf library."""

import struct

CODES = {402: 1, 403: 2, 404: 100, **{500 + k: 100 + k for k in range(1, 8)}}
"""V3's status numbers as those of V2, which histories use."""
RECOVERY = 2


def varint(value: int) -> bytes:
    """Encode a varint: seven bits per byte, lowest first; negative numbers as 64 bits."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def sized(tag: bytes, body: bytes) -> bytes:
    """Encode a field of bytes."""
    return tag + varint(len(body)) + body


def add_frame(key: bytes, body: bytes, flags: int, transaction: int) -> bytes:
    """Encode an add of `body`, whose first 16 bytes are its ids."""
    ledger, entry = struct.unpack_from(">qq", body)
    fields = b"\x08" + varint(ledger) + b"\x10" + varint(entry) + sized(b"\x1a", key) + sized(b"\x22", body)
    if flags & RECOVERY:
        fields += b"\xa0\x06\x01"
    message = sized(b"\x0a", b"\x08\x03\x10\x02\x18" + varint(transaction)) + sized(b"\xaa\x06", fields)
    return struct.pack(">I", len(message)) + message


def fields_of(data: bytes) -> dict[int, int | bytes]:
    """Return numbers and bytes by field; the last value of each counts."""
    found: dict[int, int | bytes] = {}
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = number()
        value = number()
        if tag & 7 == 2:
            found[tag >> 3] = data[at : at + value]
            at += value
        else:
            found[tag >> 3] = value
    return found


def add_answer(message: bytes) -> tuple[int, int, int]:
    """Return (code as in V2, ledger, entry) from the body of a response frame."""
    part = fields_of(message)[101]
    assert isinstance(part, bytes)
    fields = fields_of(part)
    status, ledger, entry = (value for number in (1, 2, 3) if isinstance(value := fields[number], int))
    return CODES.get(status, status), ledger, entry
