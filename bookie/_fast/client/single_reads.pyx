"""Frames of single reads, written one after the other, V3's responses to them, and its frame of a batch read."""
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memset

import numpy as np

from bookie._fast.base.cursor cimport store_i64, store_u32
from bookie._fast.base.types cimport CORRUPT, OK
from bookie._fast.wire.proto cimport (
    NESTING_MAX,
    WIRE_BYTES,
    WIRE_VARINT,
    read_size,
    read_tag,
    read_varint,
    skip_field,
    varint_bytes,
    write_number,
)
from bookie._fast.wire.request cimport BATCH_READ_ENTRY, READ_ENTRY
from bookie._fast.wire.v2 cimport FRAME_PREFIX, OP_READ, READ_BYTES, VERSION_MAX, v2_header

cdef enum:
    VERSION = 3
    HEADER_TAG = 0x0a
    # Of readRequest and readResponse, which are field 100 of Request and Response.
    PART_TAG = 100 << 3 | WIRE_BYTES
    BATCH_TAG = 109 << 3 | WIRE_BYTES    # of batchReadRequest
    BODY_TAG = 4 << 3 | WIRE_BYTES
    LAC_TAG = 5 << 3 | WIRE_VARINT


cdef void frames_v2(int64_t ledger, const int64_t* entries, int64_t count, uint8_t* out) noexcept nogil:
    cdef uint32_t header = v2_header(VERSION_MAX, OP_READ, 0)
    cdef int64_t k
    for k in range(count):
        store_u32(out, READ_BYTES)
        store_u32(out + 4, header)
        store_i64(out + 8, ledger)
        store_i64(out + 16, entries[k])
        out += FRAME_PREFIX + READ_BYTES


cdef inline uint32_t header_bytes(uint64_t transaction) noexcept nogil:
    return 5 + varint_bytes(transaction)


cdef inline uint32_t part_bytes(int64_t ledger, int64_t entry) noexcept nogil:
    return 2 + varint_bytes(<uint64_t> ledger) + varint_bytes(<uint64_t> entry)


cdef int64_t frames_v3(int64_t ledger, const int64_t* entries, int64_t count, uint64_t transaction,
                       uint8_t* out) noexcept nogil:
    """Write the frames and return their size; with `out` NULL only that. Header and message have less than 128 bytes
    each.
    """
    cdef int64_t k, size
    cdef int64_t total = 0
    cdef uint32_t header, part
    for k in range(count):
        header = header_bytes(transaction + <uint64_t> k)
        part = part_bytes(ledger, entries[k])
        size = 2 + header + 3 + part
        total += FRAME_PREFIX + size
        if out == NULL:
            continue
        store_u32(out, <uint32_t> size)
        out[4], out[5] = HEADER_TAG, <uint8_t> header
        out = write_number(out + 6, 1, VERSION)
        out = write_number(out, 2, READ_ENTRY)
        out = write_number(out, 3, <int64_t> (transaction + <uint64_t> k))
        out[0], out[1], out[2] = PART_TAG & 0x7F | 0x80, PART_TAG >> 7, <uint8_t> part
        out = write_number(out + 3, 1, ledger)
        out = write_number(out, 2, entries[k])
    return total


cdef size_t batch_frame_v3(int64_t ledger, int64_t start, int32_t count, int64_t size, uint64_t transaction,
                           uint8_t* out) noexcept nogil:
    cdef uint32_t header = header_bytes(transaction)
    cdef uint8_t* part = out + FRAME_PREFIX + 2 + header + 3   # its size follows when it is written
    cdef uint8_t* at = out + FRAME_PREFIX + 2
    out[4], out[5] = HEADER_TAG, <uint8_t> header
    at = write_number(at, 1, VERSION)
    at = write_number(at, 2, BATCH_READ_ENTRY)
    at = write_number(at, 3, <int64_t> transaction)
    at[0], at[1] = BATCH_TAG & 0x7F | 0x80, BATCH_TAG >> 7
    at = write_number(part, 1, ledger)
    at = write_number(at, 2, start)
    at = write_number(at, 3, count)
    at = write_number(at, 4, size)
    (part - 1)[0] = <uint8_t> (at - part)
    store_u32(out, <uint32_t> (at - out - FRAME_PREFIX))
    return at - out


cdef Status read_part(const uint8_t* at, const uint8_t* end, ReadAnswerV3* answer) noexcept nogil:
    cdef uint32_t tag, size
    cdef uint64_t number
    while at != end:
        at = read_tag(at, end, &tag)
        if at == NULL:
            return CORRUPT
        if tag == BODY_TAG:
            at = read_size(at, end, &size)
            if at == NULL:
                return CORRUPT
            answer.entry, answer.size = at, size
            at += size
        elif tag == LAC_TAG:
            at = read_varint(at, end, &number)
            if at == NULL:
                return CORRUPT
            answer.has_lac, answer.lac = True, <int64_t> number
        else:
            at = skip_field(at, end, tag, NESTING_MAX)
            if at == NULL:
                return CORRUPT
    return OK


cdef Status read_answer_v3(const uint8_t* body, size_t size, ReadAnswerV3* answer) noexcept nogil:
    cdef const uint8_t* at = body
    cdef const uint8_t* end = body + size
    cdef uint32_t tag, part
    cdef bint found = False
    memset(answer, 0, sizeof(ReadAnswerV3))
    while at != end:
        at = read_tag(at, end, &tag)
        if at == NULL:
            return CORRUPT
        if tag == PART_TAG:
            at = read_size(at, end, &part)
            if at == NULL or read_part(at, at + part, answer) != OK:
                return CORRUPT
            found = True
            at += part
        else:
            at = skip_field(at, end, tag, NESTING_MAX)
            if at == NULL:
                return CORRUPT
    return OK if found else CORRUPT


def requests_v2(int64_t ledger, const int64_t[::1] entries):
    """Return the READ frames of these entries as a uint8 array."""
    cdef uint8_t[::1] out
    cdef int64_t count = entries.shape[0]
    frames = np.empty(count * (FRAME_PREFIX + READ_BYTES), dtype=np.uint8)
    if count:
        out = frames
        with nogil:
            frames_v2(ledger, &entries[0], count, &out[0])
    return frames


def requests_v3(int64_t ledger, const int64_t[::1] entries, int64_t transaction):
    """Return V3's frames of these reads as a uint8 array; entries[k] is sent in transaction + k."""
    cdef uint8_t[::1] out
    cdef int64_t count = entries.shape[0]
    if count == 0:
        return np.empty(0, dtype=np.uint8)
    frames = np.empty(frames_v3(ledger, &entries[0], count, <uint64_t> transaction, NULL), dtype=np.uint8)
    out = frames
    with nogil:
        frames_v3(ledger, &entries[0], count, <uint64_t> transaction, &out[0])
    return frames


def entry_of(const uint8_t[::1] response):
    """Return the entry in a V3 response to a read, and its LAC; each may be None. ValueError if it is not such a
    response.
    """
    cdef ReadAnswerV3 answer
    if response.shape[0] == 0 or read_answer_v3(&response[0], response.shape[0], &answer) != OK:
        raise ValueError("the response holds no ReadResponse, or is torn")
    entry = (<const char*> answer.entry)[:answer.size] if answer.entry != NULL else None
    return entry, answer.lac if answer.has_lac else None
