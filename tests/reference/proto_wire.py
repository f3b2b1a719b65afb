"""Protobuf's wire format in plain Python: the oracle of `bookie._fast.wire.proto`.

It judges bytes as the protobuf library (upb) judges a message that has no fields.
"""

VARINT, FIXED64, BYTES, GROUP, GROUP_END, FIXED32 = range(6)
NESTING_MAX = 100


class Malformed(ValueError):
    """The bytes are no sequence of fields."""


def encode(value: int, size: int = 0) -> bytes:
    """Return a varint, padded to `size` bytes when that is more than it needs."""
    out: list[int] = []
    while value >= 0x80 or len(out) + 1 < size:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def tag(number: int, kind: int, size: int = 0) -> bytes:
    """Return what opens a field."""
    return encode(number << 3 | kind, size)


def field(number: int, value: int | bytes) -> bytes:
    """Return a whole field: an integer, or bytes after their length."""
    if isinstance(value, bytes):
        return tag(number, BYTES) + encode(len(value)) + value
    return tag(number, VARINT) + encode(value % 2**64)


def varint(data: bytes, at: int = 0, bytes_max: int = 10) -> tuple[int, int]:
    """Return the number at `at`, cut to 64 bits, and the place after it."""
    value = 0
    for k, byte in enumerate(data[at : at + bytes_max]):
        value |= (byte & 0x7F) << 7 * k
        if byte < 0x80:
            return value % 2**64, at + k + 1
    raise Malformed


def _short(data: bytes, at: int, most: int) -> tuple[int, int]:
    value, at = varint(data, at, 5)
    if value > most:
        raise Malformed
    return value, at


def _skip(data: bytes, at: int, kind: int) -> int:
    """Return the place after a value that is no group."""
    if kind == VARINT:
        return varint(data, at)[1]
    if kind == BYTES:
        size, at = _short(data, at, 2**31 - 1)
    else:
        size = {FIXED64: 8, FIXED32: 4}.get(kind, len(data) + 1)
    if size > len(data) - at:
        raise Malformed
    return at + size


def _skip_group(data: bytes, at: int, number: int, nesting: int) -> int:
    if nesting == 0:
        raise Malformed
    while True:
        word, at = _short(data, at, 2**32 - 1)
        inner, kind = word >> 3, word & 7
        if kind == GROUP_END:
            if inner != number:
                raise Malformed
            return at
        at = _skip_group(data, at, inner, nesting - 1) if kind == GROUP else _skip(data, at, kind)


def skip_fields(data: bytes, nesting: int = NESTING_MAX) -> int:
    """Return how many fields `data` is, or -1 when it is no sequence of fields."""
    at = count = 0
    try:
        while at < len(data):
            word, at = _short(data, at, 2**32 - 1)
            number, kind = word >> 3, word & 7
            at = _skip_group(data, at, number, nesting) if kind == GROUP else _skip(data, at, kind)
            count += 1
    except Malformed:
        return -1
    return count
