"""Protobuf's wire format: bounded varints, tags, skipping, writing. No messages, no state, no allocation; any thread.

A reader returns the position after what it read, or NULL if the bytes are not valid protobuf or end too early. It
accepts and rejects the same bytes as the protobuf library (upb), so that both judge a message alike.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

cdef extern from *:
    int leading_zeros "__builtin_clzll"(unsigned long long) noexcept nogil

cdef enum WireType:
    WIRE_VARINT = 0
    WIRE_FIXED64 = 1
    WIRE_BYTES = 2
    WIRE_GROUP = 3
    WIRE_GROUP_END = 4
    WIRE_FIXED32 = 5

cdef enum:
    VARINT_BYTES_MAX = 10
    SHORT_BYTES_MAX = 5          # of a tag or a length, which may be padded to this
    NESTING_MAX = 100            # depth of groups and sub-messages
    BYTES_MAX = 0x7FFFFFFF       # of a string, bytes or sub-message

# Skip the field that `tag` opens; `at` is the position after the tag. Groups may nest `nesting` levels deep. Field
# numbers are not checked, not even for 0, which the library rejects in messages with fields only.
cdef const uint8_t* skip_field(const uint8_t* at, const uint8_t* end, uint32_t tag, uint32_t nesting) noexcept nogil

cdef inline const uint8_t* long_varint(const uint8_t* at, const uint8_t* end, uint32_t bytes_max,
                                       uint64_t* value) noexcept nogil:
    cdef uint64_t sum = 0
    cdef uint32_t i
    for i in range(bytes_max):
        if at == end:
            return NULL
        sum |= <uint64_t> (at[0] & 0x7F) << (7 * i)
        if at[0] < 0x80:
            value[0] = sum
            return at + 1
        at += 1
    return NULL

cdef inline const uint8_t* read_varint(const uint8_t* at, const uint8_t* end, uint64_t* value) noexcept nogil:
    """Read a varint; bits above the 64th are dropped."""
    if at != end and at[0] < 0x80:
        value[0] = at[0]
        return at + 1
    return long_varint(at, end, VARINT_BYTES_MAX, value)

cdef inline const uint8_t* read_tag(const uint8_t* at, const uint8_t* end, uint32_t* tag) noexcept nogil:
    cdef uint64_t value
    if at != end and at[0] < 0x80:
        tag[0] = at[0]
        return at + 1
    at = long_varint(at, end, SHORT_BYTES_MAX, &value)
    if at == NULL or value > <uint64_t> 0xFFFFFFFF:
        return NULL
    tag[0] = <uint32_t> value
    return at

cdef inline const uint8_t* read_size(const uint8_t* at, const uint8_t* end, uint32_t* size) noexcept nogil:
    """Read the length of a string, bytes or sub-message, which must end before `end`."""
    cdef uint64_t value
    if at != end and at[0] < 0x80:
        value = at[0]
        at += 1
    else:
        at = long_varint(at, end, SHORT_BYTES_MAX, &value)
    if at == NULL or value > BYTES_MAX or value > <uint64_t> (end - at):
        return NULL
    size[0] = <uint32_t> value
    return at

cdef inline uint32_t varint_bytes(uint64_t value) noexcept nogil:
    """Return the size of a varint: one byte for each seven bits."""
    return (<uint32_t> (63 - leading_zeros(value | 1)) + 7) // 7

cdef inline uint8_t* write_varint(uint8_t* out, uint64_t value) noexcept nogil:
    """Write a varint of at most VARINT_BYTES_MAX bytes and return the position after it."""
    while value >= 0x80:
        out[0] = <uint8_t> value | 0x80
        out += 1
        value >>= 7
    out[0] = <uint8_t> value
    return out + 1

cdef inline uint8_t* write_padded(uint8_t* out, uint64_t value, uint32_t size) noexcept nogil:
    """Write `value`, below 2 ** (7 * size), as a varint of exactly `size` bytes."""
    while size > 1:
        out[0] = <uint8_t> value | 0x80
        out += 1
        value >>= 7
        size -= 1
    out[0] = <uint8_t> value
    return out + 1

cdef inline uint8_t* write_number(uint8_t* out, uint8_t field, int64_t value) noexcept nogil:
    """Write an integer or enum field with number 1 to 15; a negative value takes ten bytes."""
    out[0] = (field << 3) | WIRE_VARINT
    return write_varint(out + 1, <uint64_t> value)
