"""Protobuf's wire format: the longer readers, and functions for tests. Any thread; owns no memory."""
from libc.stddef cimport size_t


cdef const uint8_t* skip_plain(const uint8_t* at, const uint8_t* end, uint32_t type) noexcept nogil:
    """Skip a value that is not a group."""
    cdef uint64_t number
    cdef uint32_t size
    if type == WIRE_VARINT:
        return read_varint(at, end, &number)
    if type == WIRE_BYTES:
        at = read_size(at, end, &size)
        if at == NULL:
            return NULL
        return at + size
    if type == WIRE_FIXED64:
        size = 8
    elif type == WIRE_FIXED32:
        size = 4
    else:
        return NULL
    if end - at < <int64_t> size:
        return NULL
    return at + size


cdef const uint8_t* skip_group(const uint8_t* at, const uint8_t* end, uint32_t number, uint32_t nesting) noexcept nogil:
    """Skip up to and including the end tag of group `number`."""
    cdef uint32_t[NESTING_MAX] opened
    cdef uint32_t depth = 1
    cdef uint32_t tag
    if nesting < 1:
        return NULL
    opened[0] = number
    while depth:
        at = read_tag(at, end, &tag)
        if at == NULL:
            return NULL
        if tag & 7 == WIRE_GROUP:
            if depth == nesting:
                return NULL
            opened[depth] = tag >> 3
            depth += 1
        elif tag & 7 == WIRE_GROUP_END:
            depth -= 1
            if opened[depth] != tag >> 3:
                return NULL
        else:
            at = skip_plain(at, end, tag & 7)
            if at == NULL:
                return NULL
    return at


cdef const uint8_t* skip_field(const uint8_t* at, const uint8_t* end, uint32_t tag, uint32_t nesting) noexcept nogil:
    if tag & 7 == WIRE_GROUP:
        return skip_group(at, end, tag >> 3, nesting)
    return skip_plain(at, end, tag & 7)


def skip_fields(const uint8_t[::1] data, uint32_t nesting=NESTING_MAX):
    """Return the number of fields in `data`, or -1 if it is not a sequence of fields. For tests."""
    cdef size_t size = data.shape[0]
    cdef const uint8_t* at = &data[0] if size else NULL
    cdef const uint8_t* end = at + size
    cdef uint32_t tag
    count = 0
    if nesting > NESTING_MAX:
        raise ValueError(f"nesting {nesting} is above {NESTING_MAX}; pass at most that")
    while at != end:
        at = read_tag(at, end, &tag)
        if at != NULL:
            at = skip_field(at, end, tag, nesting)
        if at == NULL:
            return -1
        count += 1
    return count


def varint(const uint8_t[::1] data):
    """Return the varint at the beginning of `data` and its size in bytes, or None. For tests."""
    cdef size_t size = data.shape[0]
    cdef const uint8_t* base = &data[0] if size else NULL
    cdef uint64_t value
    cdef const uint8_t* at = read_varint(base, base + size, &value)
    return None if at == NULL else (value, at - base)


def encode(uint64_t value, uint32_t size=0):
    """Encode `value` as a varint, of exactly `size` bytes unless that is 0. For tests."""
    cdef uint8_t[VARINT_BYTES_MAX] out
    cdef uint8_t* end
    if size == 0:
        end = write_varint(out, value)
        if end - out != varint_bytes(value):
            raise AssertionError(f"{value} takes {end - out} bytes, not {varint_bytes(value)}")
    elif varint_bytes(value) <= size <= VARINT_BYTES_MAX:
        end = write_padded(out, value, size)
    else:
        raise ValueError(f"{value} does not fit into {size} bytes; pass {varint_bytes(value)} to {VARINT_BYTES_MAX}")
    return (<const char*> out)[:end - out]


def number_field(uint8_t field, int64_t value):
    """Encode an integer field with number 1 to 15. For tests."""
    cdef uint8_t[1 + VARINT_BYTES_MAX] out
    if not 1 <= field <= 15:
        raise ValueError(f"field {field} has a tag of more than one byte; pass 1 to 15")
    return (<const char*> out)[:write_number(out, field, value) - out]
