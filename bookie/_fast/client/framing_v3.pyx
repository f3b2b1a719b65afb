"""V3 frames with bulk data as a client writes and reads them. The GIL is released once per batch."""
from libc.string cimport memcpy, memset

import numpy as np

from bookie._fast.base.cursor cimport store_i64, store_u32
from bookie._fast.base.types cimport CORRUPT, OK
from bookie._fast.client.framing_v2 cimport cut_rows, records_fit
from bookie._fast.wire.digest cimport ENTRY_FIXED_BYTES, digest_sum
from bookie._fast.wire.request cimport ADD_ENTRY

cdef uint8_t NOTHING            # where payloads begin if all are empty, since memcpy takes no NULL

cdef enum:
    FRAME_PREFIX = 4
    RECORD_PREFIX = 4            # of an entry in a run
    VERSION = 3
    # Tags of proto/bookie/pb/wire.proto.
    HEADER = 1
    STATUS = 2
    BATCH_READ_RESPONSE = 109
    HEADER_OPERATION = 2
    HEADER_TRANSACTION = 3
    BATCH_BODY = 4
    BODY_TAG = 0x22
    BATCH_MAX_LAC = 5

cdef enum WireType:
    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    FIXED32 = 5

cdef struct Field:
    uint32_t number
    uint32_t kind
    uint64_t value               # VARINT, or the size of BYTES
    const uint8_t* data          # BYTES
    size_t at                    # of the tag, from the start of the walk


cdef inline uint32_t varint_size(uint64_t value) noexcept nogil:
    cdef uint32_t size = 1
    while value >= 0x80:
        value >>= 7
        size += 1
    return size


cdef inline uint8_t* put_varint(uint8_t* out, uint64_t value) noexcept nogil:
    while value >= 0x80:
        out[0] = <uint8_t> (value | 0x80)
        value >>= 7
        out += 1
    out[0] = <uint8_t> value
    return out + 1


cdef inline uint8_t* put_tagged(uint8_t* out, uint8_t tag, uint64_t value) noexcept nogil:
    out[0] = tag
    return put_varint(out + 1, value)


cdef inline uint64_t header_size(const AddBatchV3* batch, uint64_t transaction) noexcept nogil:
    cdef uint64_t size = 5 + varint_size(transaction)
    return size if batch.priority == 0 else size + 1 + varint_size(batch.priority)


cdef inline uint64_t request_size(const AddBatchV3* batch, int64_t id, int64_t stored) noexcept nogil:
    """Return the size of the AddRequest for an entry of `stored` bytes."""
    cdef uint64_t size = 4 + varint_size(<uint64_t> batch.ledger) + varint_size(<uint64_t> id)
    size += varint_size(batch.key_size) + batch.key_size + varint_size(stored) + stored
    if batch.write_flags:
        size += 1 + varint_size(batch.write_flags)
    return size + 3 if batch.recovery else size


cdef inline int64_t frame_size(const AddBatchV3* batch, uint64_t transaction, int64_t id,
                               int64_t stored) noexcept nogil:
    cdef uint64_t request = request_size(batch, id, stored)
    return FRAME_PREFIX + 2 + header_size(batch, transaction) + 2 + varint_size(request) + request


cdef int64_t add_frame_v3_size(const AddBatchV3* batch, int64_t id, int64_t size) noexcept nogil:
    return frame_size(batch, batch.transaction + <uint64_t> (id - batch.first), id,
                      ENTRY_FIXED_BYTES + batch.digest.size + size)


cdef inline uint8_t* put_head(const AddBatchV3* batch, uint64_t transaction, int64_t id, uint64_t stored,
                              uint8_t* out) noexcept nogil:
    """Write the frame up to the entry, except for its length word; return where the entry begins."""
    out = put_tagged(out + FRAME_PREFIX, 0x0a, header_size(batch, transaction))
    out = put_tagged(out, 0x08, VERSION)
    out = put_tagged(out, 0x10, ADD_ENTRY)
    out = put_tagged(out, 0x18, transaction)
    if batch.priority:
        out = put_tagged(out, 0x20, batch.priority)
    out[0], out[1] = 0xaa, 0x06              # addRequest
    out = put_varint(out + 2, request_size(batch, id, stored))
    out = put_tagged(out, 0x08, <uint64_t> batch.ledger)
    out = put_tagged(out, 0x10, <uint64_t> id)
    out = put_tagged(out, 0x1a, batch.key_size)
    memcpy(out, batch.key, batch.key_size)
    return put_tagged(out + batch.key_size, 0x22, stored)


cdef inline uint8_t* put_tail(const AddBatchV3* batch, uint8_t* frame, uint8_t* out) noexcept nogil:
    """Write what follows the entry, which ends at `out`, and the frame's length word; return the end of the frame."""
    if batch.write_flags:
        out = put_tagged(out, 0x28, batch.write_flags)
    if batch.recovery:
        out[0], out[1], out[2] = 0xa0, 0x06, 0x01    # flag = RECOVERY_ADD
        out += 3
    store_u32(frame, <uint32_t> (out - frame - FRAME_PREFIX))
    return out


cdef void add_frames_v3(const AddBatchV3* batch, const uint8_t* payloads, const int64_t* offsets, int64_t count,
                        uint8_t* out) noexcept nogil:
    cdef uint8_t* entry
    cdef uint8_t* data
    cdef int64_t k, id, size
    for k in range(count):
        id = batch.first + k
        size = offsets[k + 1] - offsets[k]
        entry = put_head(batch, batch.transaction + <uint64_t> (id - batch.first), id,
                         ENTRY_FIXED_BYTES + batch.digest.size + size, out)
        store_i64(entry, batch.ledger)
        store_i64(entry + 8, id)
        store_i64(entry + 16, batch.lac)
        store_i64(entry + 24, batch.length + offsets[k + 1] - offsets[0])
        data = entry + ENTRY_FIXED_BYTES + batch.digest.size
        memcpy(data, payloads + offsets[k], size)
        digest_sum(batch.digest, entry, ENTRY_FIXED_BYTES, data, size, entry + ENTRY_FIXED_BYTES)
        out = put_tail(batch, out, data + size)


cdef void stored_frames_v3(const AddBatchV3* batch, const uint8_t* records, const int64_t* offsets,
                           const int64_t* entries, int64_t count, uint8_t* out) noexcept nogil:
    cdef uint8_t* entry
    cdef int64_t k, size
    for k in range(count):
        size = offsets[k + 1] - offsets[k] - RECORD_PREFIX
        entry = put_head(batch, batch.transaction + <uint64_t> k, entries[k], size, out)
        memcpy(entry, records + offsets[k] + RECORD_PREFIX, size)
        out = put_tail(batch, out, entry + size)


cdef inline Status take_varint(const uint8_t* body, size_t size, size_t* at, uint64_t* value) noexcept nogil:
    cdef uint32_t shift = 0
    value[0] = 0
    while at[0] < size and shift < 70:
        value[0] |= <uint64_t> (body[at[0]] & 0x7F) << shift if shift < 64 else 0
        at[0] += 1
        if body[at[0] - 1] < 0x80:
            return OK
        shift += 7
    return CORRUPT


cdef Status take_field(const uint8_t* body, size_t size, size_t* at, Field* field) noexcept nogil:
    """Read the field at *at and move *at behind it. CORRUPT if it is torn, or a group, which no bookie sends."""
    cdef uint64_t tag
    field.at = at[0]
    if take_varint(body, size, at, &tag) != OK or tag >> 3 == 0 or tag >> 32:
        return CORRUPT
    field.number, field.kind = <uint32_t> (tag >> 3), tag & 7
    field.value = 0
    if field.kind == VARINT:
        return take_varint(body, size, at, &field.value)
    if field.kind == FIXED64:
        field.value = 8
    elif field.kind == FIXED32:
        field.value = 4
    elif field.kind != BYTES or take_varint(body, size, at, &field.value) != OK:
        return CORRUPT
    if field.value > size - at[0]:
        return CORRUPT
    field.data = body + at[0]
    at[0] += field.value
    return OK


cdef Status header_row(const uint8_t* body, size_t size, Response* row, bint* whole) noexcept nogil:
    """Read operation and transaction id from a BKPacketHeader; `whole` tells whether both are present."""
    cdef size_t at = 0
    cdef Field field
    cdef bint operation = False
    cdef bint transaction = False
    while at < size:
        if take_field(body, size, &at, &field) != OK:
            return CORRUPT
        if field.number == HEADER_OPERATION and field.kind == VARINT:
            row.op = <int> field.value
            operation = True
        elif field.number == HEADER_TRANSACTION and field.kind == VARINT:
            row.request_id = <int64_t> field.value
            transaction = True
    whole[0] = operation and transaction
    return OK


cdef Status response_v3_row(const uint8_t* body, uint32_t size, Response* row) noexcept nogil:
    """Fill `row` from one Response; body_at counts from `body`."""
    cdef size_t at = 0
    cdef Field field
    cdef bint header = False
    cdef bint status = False
    memset(row, 0, sizeof(Response))
    row.body_size = size
    while at < size:
        if take_field(body, size, &at, &field) != OK:
            return CORRUPT
        if field.number == HEADER and field.kind == BYTES:
            if header_row(field.data, field.value, row, &header) != OK:
                return CORRUPT
        elif field.number == STATUS and field.kind == VARINT:
            row.code = <int> field.value
            status = True
    return OK if header and status else CORRUPT


cdef Status batch_bodies(const uint8_t* body, size_t size, size_t base, BatchAnswer* answer) noexcept nogil:
    """Find the entries of one BatchReadResponse, which begins at offset `base` of the Response."""
    cdef size_t at = 0
    cdef Field field
    while at < size:
        if take_field(body, size, &at, &field) != OK:
            return CORRUPT
        if field.number == BATCH_BODY and field.kind == BYTES:
            if answer.count == 0:
                answer.at = base + field.at
            elif answer.end != base + field.at:
                answer.in_place = False
            if field.data - body - field.at != RECORD_PREFIX or body[field.at] != BODY_TAG:
                answer.in_place = False
            answer.end = base + at
            answer.count += 1
            answer.run_bytes += RECORD_PREFIX + field.value
        elif field.number == BATCH_MAX_LAC and field.kind == VARINT:
            answer.has_lac = True
            answer.lac = <int64_t> field.value
    return OK


cdef Status batch_answer_find(const uint8_t* body, size_t size, BatchAnswer* answer) noexcept nogil:
    cdef size_t at = 0
    cdef Field field
    cdef bint found = False
    memset(answer, 0, sizeof(BatchAnswer))
    answer.in_place = True
    while at < size:
        if take_field(body, size, &at, &field) != OK:
            return CORRUPT
        if field.number == BATCH_READ_RESPONSE and field.kind == BYTES:
            if batch_bodies(field.data, field.value, field.data - body, answer) != OK:
                return CORRUPT
            found = True
    return OK if found else CORRUPT


cdef void patch_run(uint8_t* body, const BatchAnswer* answer) noexcept nogil:
    """Rewrite `tag | length in 3 bytes | entry` to `u32 length | entry` in place."""
    cdef size_t at = answer.at
    cdef uint32_t size
    while at < answer.end:
        size = body[at + 1] & 0x7F | (body[at + 2] & 0x7F) << 7 | <uint32_t> (body[at + 3] & 0x7F) << 14
        store_u32(body + at, size)
        at += RECORD_PREFIX + size


cdef void copy_bodies(const uint8_t* body, size_t size, uint8_t** out) noexcept nogil:
    cdef size_t at = 0
    cdef Field field
    while at < size and take_field(body, size, &at, &field) == OK:
        if field.number == BATCH_BODY and field.kind == BYTES:
            store_u32(out[0], <uint32_t> field.value)
            memcpy(out[0] + RECORD_PREFIX, field.data, field.value)
            out[0] += RECORD_PREFIX + field.value


cdef void copy_run(const uint8_t* body, size_t size, uint8_t* out) noexcept nogil:
    """Copy the entries to `out` as `u32 length | entry`, however the Response lays them out."""
    cdef size_t at = 0
    cdef Field field
    while at < size and take_field(body, size, &at, &field) == OK:
        if field.number == BATCH_READ_RESPONSE and field.kind == BYTES:
            copy_bodies(field.data, field.value, &out)


cdef class AddFramerV3:
    """Builds the ADD frames of one ledger's writer. Immutable; any thread."""

    def __init__(self, Digester digester, bytes key, int64_t ledger, uint32_t frame_bytes_max, *,
                 uint32_t priority=0, uint32_t write_flags=0, bint recovery=False):
        self.digester = digester
        self.key = key
        self.ledger = ledger
        self.frame_bytes_max = frame_bytes_max
        self.batch.ledger = ledger
        self.batch.priority, self.batch.write_flags, self.batch.recovery = priority, write_flags, recovery
        self.batch.key, self.batch.key_size = <const uint8_t*> (<const char*> key), <uint32_t> len(key)
        self.batch.digest = &digester.digest

    def build(self, int64_t first, int64_t lac, int64_t length, const uint8_t[::1] payloads,
              const int64_t[::1] offsets, int64_t transaction):
        """Return the frames of entries first, first + 1, ... as a uint8 array. Payload k is
        payloads[offsets[k]:offsets[k + 1]], and is sent in transaction + k.

        `length` is the number of payload bytes in the ledger before `first`. ValueError names a payload that does not
        fit.
        """
        cdef AddBatchV3 batch = self.batch
        cdef int64_t count = offsets.shape[0] - 1
        cdef int64_t k, size
        cdef int64_t total = 0
        cdef uint8_t[::1] out
        cdef const uint8_t* data = &payloads[0] if payloads.shape[0] else &NOTHING
        batch.first, batch.lac, batch.length, batch.transaction = first, lac, length, <uint64_t> transaction
        for k in range(count):
            if offsets[k] < 0 or offsets[k + 1] < offsets[k] or offsets[k + 1] > payloads.shape[0]:
                raise ValueError(f"payload {k} is bytes {offsets[k]} to {offsets[k + 1]} of only {payloads.shape[0]}")
            size = add_frame_v3_size(&batch, first + k, offsets[k + 1] - offsets[k])
            if size > self.frame_bytes_max:
                raise ValueError(f"payload {k} needs a frame of {size} bytes; the limit is {self.frame_bytes_max}")
            total += size
        if count <= 0:
            return np.empty(0, dtype=np.uint8)
        frames = np.empty(total, dtype=np.uint8)
        out = frames
        with nogil:
            add_frames_v3(&batch, data, &offsets[0], count, &out[0])
        return frames


def stored_adds(int64_t ledger, bytes key, const uint8_t[::1] records, const int64_t[::1] offsets,
                const int64_t[::1] entries, int64_t transaction, uint32_t frame_bytes_max, *,
                uint32_t priority=0, uint32_t write_flags=0, bint recovery=False):
    """Return the ADD frames of entries as stored, as a uint8 array; records[offsets[k]:offsets[k + 1]] is `u32 size |
    entry`.

    Record k is sent as entries[k] in transaction + k. ValueError names a record that does not fit.
    """
    cdef AddBatchV3 batch
    cdef int64_t count = entries.shape[0]
    cdef int64_t k, size
    cdef int64_t total = 0
    cdef uint8_t[::1] out
    if offsets.shape[0] != count + 1:
        raise ValueError(f"{offsets.shape[0]} offsets for {count} entries; pass {count + 1}")
    if count == 0:
        return np.empty(0, dtype=np.uint8)
    records_fit(records, offsets, 0, frame_bytes_max)
    memset(&batch, 0, sizeof(batch))
    batch.ledger, batch.transaction = ledger, <uint64_t> transaction
    batch.priority, batch.write_flags, batch.recovery = priority, write_flags, recovery
    batch.key, batch.key_size = <const uint8_t*> (<const char*> key), <uint32_t> len(key)
    for k in range(count):
        size = frame_size(&batch, batch.transaction + <uint64_t> k, entries[k],
                          offsets[k + 1] - offsets[k] - RECORD_PREFIX)
        if size > frame_bytes_max:
            raise ValueError(f"record {k} needs a frame of {size} bytes; the limit is {frame_bytes_max}")
        total += size
    frames = np.empty(total, dtype=np.uint8)
    out = frames
    with nogil:
        stored_frames_v3(&batch, &records[0], &offsets[0], &entries[0], count, &out[0])
    return frames


def cut(const uint8_t[::1] buffer, uint32_t frame_bytes_max, rows):
    """Cut whole responses from `buffer` into `rows` (dtype framing_v2.RESPONSE); return (count, bytes taken, bytes
    needed).

    "needed" is the size of the unfinished frame after them, 0 while unknown. `body_at` counts from the start of the
    buffer. ValueError if the peer broke the framing rules: the connection cannot be used any more.
    """
    return cut_rows(buffer, frame_bytes_max, rows, response_v3_row, "V3")


def batch_run(uint8_t[::1] response):
    """Return the entries of a batch response as a run of `u32 length | entry`, and the LAC in it or None.

    If each entry follows exactly four bytes, the run is made in `response` itself, and the result is a view of it.
    ValueError if `response` is not a BatchReadResponse.
    """
    cdef BatchAnswer answer
    cdef uint8_t[::1] out
    cdef size_t size = response.shape[0]
    cdef Status status = CORRUPT
    if size:
        with nogil:
            status = batch_answer_find(&response[0], size, &answer)
    if status != OK:
        raise ValueError("the response holds no BatchReadResponse, or is torn")
    lac = answer.lac if answer.has_lac else None
    if answer.count == 0:
        return memoryview(b""), lac
    if answer.in_place:
        with nogil:
            patch_run(&response[0], &answer)
        return memoryview(response)[answer.at:answer.end], lac
    run = np.empty(answer.run_bytes, dtype=np.uint8)
    out = run
    with nogil:
        copy_run(&response[0], size, &out[0])
    return run.data, lac
