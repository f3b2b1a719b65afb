"""V2 frames as a client writes and reads them. The GIL is released once per batch of frames or responses."""
from libc.string cimport memcpy, memset

import numpy as np

from bookie._fast.base.cursor cimport load_i32, load_i64, load_u32, store_i64, store_u32
from bookie._fast.base.types cimport CORRUPT, OK
from bookie._fast.wire.digest cimport ENTRY_FIXED_BYTES, digest_sum
from bookie._fast.wire.v2 cimport (
    ADD_ENTRY_AT,
    ANSWER_BYTES,
    BATCH_ANSWER_BYTES,
    BATCH_BYTES,
    FRAME_PREFIX,
    OP_ADD,
    OP_AUTH,
    OP_BATCH_READ,
    OP_READ,
    READ_BYTES,
    VERSION_MAX,
    v2_header,
)

cdef uint8_t NOTHING            # where payloads begin if all are empty, since memcpy takes no NULL

cdef enum:
    V3_HEADER_TAG = 0x0A         # not a version of V2
    V3_START_TLS = 0x08031009    # how a V3 header begins: its version, and operation START_TLS
    OP_START_TLS = 9             # not an operation of V2

RESPONSE = np.dtype([
    ("op", "i4"), ("code", "i4"), ("ledger", "i8"), ("entry", "i8"), ("request_id", "i8"),
    ("body_at", "i8"), ("body_size", "i8"),
])


cdef void add_frames(const AddBatch* batch, const uint8_t* payloads, const int64_t* offsets, int64_t count,
                     uint8_t* out) noexcept nogil:
    cdef uint32_t overhead = ADD_FRAME_FIXED + batch.digest.size
    cdef uint32_t header = v2_header(VERSION_MAX, OP_ADD, batch.flags)
    cdef uint8_t* entry
    cdef uint8_t* data
    cdef int64_t k, size
    for k in range(count):
        size = offsets[k + 1] - offsets[k]
        store_u32(out, overhead - FRAME_PREFIX + <uint32_t> size)
        store_u32(out + 4, header)
        memcpy(out + 8, batch.key, MASTER_KEY_BYTES)
        entry = out + FRAME_PREFIX + ADD_ENTRY_AT
        store_i64(entry, batch.ledger)
        store_i64(entry + 8, batch.first + k)
        store_i64(entry + 16, batch.lac)
        store_i64(entry + 24, batch.length + offsets[k + 1] - offsets[0])
        data = out + overhead
        memcpy(data, payloads + offsets[k], size)
        digest_sum(batch.digest, entry, ENTRY_FIXED_BYTES, data, size, entry + ENTRY_FIXED_BYTES)
        out = data + size


cdef bint is_start_tls(const uint8_t* body, uint32_t size) noexcept nogil:
    return size >= 6 and body[0] == V3_HEADER_TAG and load_u32(body + 2) == V3_START_TLS


cdef Status response_row(const uint8_t* body, uint32_t size, Response* row) noexcept nogil:
    """Fill `row` from the body of one response; body_at counts from `body`."""
    cdef uint32_t header
    memset(row, 0, sizeof(Response))
    if size < 4:
        return CORRUPT
    header = load_u32(body)
    if is_start_tls(body, size):
        row.op = OP_START_TLS
        row.body_at = 4
        row.body_size = size - 4
        return OK
    row.op = header >> 16 & 0xFF if header >> 24 else header & 0xFF
    row.body_at = 4
    if row.op == OP_ADD or row.op == OP_READ:
        row.body_at = ANSWER_BYTES
    elif row.op == OP_BATCH_READ:
        row.body_at = BATCH_ANSWER_BYTES
    elif row.op != OP_AUTH:
        return CORRUPT
    if size < row.body_at:
        return CORRUPT
    row.body_size = size - row.body_at
    if row.op == OP_AUTH:
        return OK
    row.code = load_i32(body + 4)
    row.ledger = load_i64(body + 8)
    row.entry = load_i64(body + 16)
    if row.op == OP_BATCH_READ:
        row.request_id = load_i64(body + 24)
    return OK


cdef Status responses_cut(const uint8_t* buffer, size_t size, uint32_t frame_bytes_max, response_fn fill,
                          Response* rows, int64_t room, int64_t* count, size_t* taken, size_t* need) noexcept nogil:
    """Cut the whole responses in buffer[0, size) into up to `room` rows. `taken` gets the bytes of their frames;
    `need` is described in `cut`.
    """
    cdef uint32_t length
    count[0] = 0
    taken[0] = 0
    need[0] = 0
    while count[0] < room and size - taken[0] >= FRAME_PREFIX:
        length = load_u32(buffer + taken[0])
        if length > frame_bytes_max - FRAME_PREFIX:
            return CORRUPT
        if length > size - taken[0] - FRAME_PREFIX:
            need[0] = FRAME_PREFIX + <size_t> length
            return OK
        if fill(buffer + taken[0] + FRAME_PREFIX, length, &rows[count[0]]) != OK:
            return CORRUPT
        rows[count[0]].body_at += taken[0] + FRAME_PREFIX
        count[0] += 1
        taken[0] += FRAME_PREFIX + length
    return OK


cdef int64_t payload_misfit(const int64_t* offsets, int64_t count, int64_t size, int64_t payload_max) noexcept nogil:
    """Return the first payload that lies outside [0, size) or is larger than `payload_max`, or -1 if all fit."""
    cdef int64_t k
    for k in range(count):
        if offsets[k] < 0 or offsets[k + 1] < offsets[k] or offsets[k + 1] > size:
            return k
        if offsets[k + 1] - offsets[k] > payload_max:
            return k
    return -1


cdef const uint8_t* master_key(const uint8_t[::1] key) except NULL:
    if key.shape[0] != MASTER_KEY_BYTES:
        raise ValueError(f"master key has {key.shape[0]} bytes, not {MASTER_KEY_BYTES} as SHA1('ledger' + password)")
    return &key[0]


cdef class AddFramer:
    """Builds the ADD frames of one ledger's writer. Immutable; any thread."""

    def __init__(self, Digester digester, const uint8_t[::1] key, int64_t ledger, uint32_t frame_bytes_max, *,
                 uint32_t flags=0):
        self.digester = digester
        self.ledger = ledger
        self.flags = flags
        memcpy(self.key, master_key(key), MASTER_KEY_BYTES)
        self.overhead = ADD_FRAME_FIXED + digester.digest.size
        self.payload_max = <int64_t> frame_bytes_max - self.overhead

    def build(self, int64_t first, int64_t lac, int64_t length, const uint8_t[::1] payloads,
              const int64_t[::1] offsets):
        """Return the frames of entries first, first + 1, ... as a uint8 array. Payload k is
        payloads[offsets[k]:offsets[k + 1]].

        `length` is the number of payload bytes in the ledger before `first`. ValueError names a payload that does not
        fit.
        """
        cdef AddBatch batch
        cdef int64_t count = offsets.shape[0] - 1
        cdef int64_t misfit
        cdef uint8_t[::1] out
        cdef const uint8_t* data = &payloads[0] if payloads.shape[0] else &NOTHING
        if count <= 0:
            return np.empty(0, dtype=np.uint8)
        misfit = payload_misfit(&offsets[0], count, payloads.shape[0], self.payload_max)
        if misfit >= 0:
            raise ValueError(
                f"payload {misfit} is bytes {offsets[misfit]} to {offsets[misfit + 1]} of {payloads.shape[0]};"
                f" it must lie inside the buffer and have at most {self.payload_max} bytes to fit into a frame"
            )
        batch.ledger, batch.first, batch.lac, batch.length = self.ledger, first, lac, length
        batch.flags, batch.key, batch.digest = self.flags, self.key, &self.digester.digest
        frames = np.empty(count * self.overhead + offsets[count] - offsets[0], dtype=np.uint8)
        out = frames
        with nogil:
            add_frames(&batch, data, &offsets[0], count, &out[0])
        return frames


cdef void stored_frames(const uint8_t* key, uint32_t flags, const uint8_t* records, const int64_t* offsets,
                        int64_t count, uint8_t* out) noexcept nogil:
    cdef uint32_t header = v2_header(VERSION_MAX, OP_ADD, flags)
    cdef int64_t k, size
    for k in range(count):
        size = offsets[k + 1] - offsets[k] - FRAME_PREFIX
        store_u32(out, ADD_ENTRY_AT + <uint32_t> size)
        store_u32(out + 4, header)
        memcpy(out + 8, key, MASTER_KEY_BYTES)
        memcpy(out + FRAME_PREFIX + ADD_ENTRY_AT, records + offsets[k] + FRAME_PREFIX, size)
        out += FRAME_PREFIX + ADD_ENTRY_AT + size


def stored_adds(const uint8_t[::1] key, const uint8_t[::1] records, const int64_t[::1] offsets,
                uint32_t frame_bytes_max, uint32_t flags=0):
    """Return the ADD frames of entries as stored, as a uint8 array; records[offsets[k]:offsets[k + 1]] is `u32 size |
    entry`.

    ValueError names a record that does not fit.
    """
    cdef int64_t count = offsets.shape[0] - 1
    cdef const uint8_t* secret = master_key(key)
    cdef uint8_t[::1] out
    if count <= 0:
        return np.empty(0, dtype=np.uint8)
    records_fit(records, offsets, ADD_ENTRY_AT, frame_bytes_max)
    frames = np.empty(count * ADD_ENTRY_AT + offsets[count] - offsets[0], dtype=np.uint8)
    out = frames
    with nogil:
        stored_frames(secret, flags, &records[0], &offsets[0], count, &out[0])
    return frames


cdef int records_fit(const uint8_t[::1] records, const int64_t[::1] offsets, int64_t fixed,
                     uint32_t frame_bytes_max) except -1:
    cdef int64_t k, size
    for k in range(offsets.shape[0] - 1):
        size = offsets[k + 1] - offsets[k]
        if offsets[k] < 0 or size < FRAME_PREFIX or offsets[k + 1] > records.shape[0]:
            raise ValueError(f"record {k} is bytes {offsets[k]} to {offsets[k + 1]} of only {records.shape[0]}")
        if fixed + size > frame_bytes_max:
            raise ValueError(f"record {k} needs a frame of {fixed + size} bytes; the limit is {frame_bytes_max}")
    return 0


def add_frame(const uint8_t[::1] key, const uint8_t[::1] entry, uint32_t flags=0):
    """Return the ADD frame of one entry as stored (header and digest included)."""
    cdef uint8_t head[FRAME_PREFIX + ADD_ENTRY_AT]
    store_u32(head, ADD_ENTRY_AT + <uint32_t> entry.shape[0])
    store_u32(head + 4, v2_header(VERSION_MAX, OP_ADD, flags))
    memcpy(head + 8, master_key(key), MASTER_KEY_BYTES)
    return (<const char*> head)[:sizeof(head)] + bytes(entry)


def read_frame(int64_t ledger, int64_t entry, uint32_t flags=0, key=None):
    """Return a READ frame; entry -1 stands for the last one. A fencing read needs the 20 bytes of `key`."""
    cdef uint8_t frame[FRAME_PREFIX + READ_BYTES + MASTER_KEY_BYTES]
    cdef uint32_t size = READ_BYTES
    if key is not None:
        memcpy(frame + FRAME_PREFIX + size, master_key(key), MASTER_KEY_BYTES)
        size += MASTER_KEY_BYTES
    store_u32(frame, size)
    store_u32(frame + 4, v2_header(VERSION_MAX, OP_READ, flags))
    store_i64(frame + 8, ledger)
    store_i64(frame + 16, entry)
    return (<const char*> frame)[:FRAME_PREFIX + size]


cdef uint32_t batch_frame_v2(int64_t ledger, int64_t start, int64_t request_id, int32_t count_max, int64_t size_max,
                             uint32_t flags, const uint8_t* key, uint8_t* out) noexcept nogil:
    cdef uint32_t size = BATCH_BYTES
    if key != NULL:
        memcpy(out + FRAME_PREFIX + size, key, MASTER_KEY_BYTES)
        size += MASTER_KEY_BYTES
    store_u32(out, size)
    store_u32(out + 4, v2_header(VERSION_MAX, OP_BATCH_READ, flags))
    store_i64(out + 8, ledger)
    store_i64(out + 16, start)
    store_i64(out + 24, request_id)
    store_u32(out + 32, <uint32_t> count_max)
    store_i64(out + 36, size_max)
    return FRAME_PREFIX + size


def batch_read_frame(int64_t ledger, int64_t start, int64_t request_id, int32_t count_max, int64_t size_max,
                     uint32_t flags=0, key=None):
    """Return a BATCH_READ frame. count_max <= 0 means no limit on the count; size_max <= 0 means one entry."""
    cdef uint8_t frame[FRAME_PREFIX + BATCH_BYTES + MASTER_KEY_BYTES]
    cdef const uint8_t* secret = NULL
    cdef uint32_t size
    if key is not None:
        secret = master_key(key)
    size = batch_frame_v2(ledger, start, request_id, count_max, size_max, flags, secret, frame)
    return (<const char*> frame)[:size]


def auth_frame(message):
    """Return the AUTH frame of a serialized AuthMessage."""
    cdef uint8_t head[FRAME_PREFIX + 4]
    store_u32(head, 4 + <uint32_t> len(message))
    store_u32(head + 4, v2_header(VERSION_MAX, OP_AUTH, 0))
    return (<const char*> head)[:sizeof(head)] + bytes(message)


cdef tuple cut_rows(const uint8_t[::1] buffer, uint32_t frame_bytes_max, rows, response_fn fill, protocol):
    cdef uint8_t[::1] table = rows.view(np.uint8)
    cdef size_t size = buffer.shape[0]
    cdef int64_t room = table.shape[0] // <int64_t> sizeof(Response)
    cdef int64_t count
    cdef size_t taken, need
    cdef Status status
    if room == 0 or size == 0:
        return 0, 0, 0
    with nogil:
        status = responses_cut(&buffer[0], size, frame_bytes_max, fill, <Response*> &table[0], room, &count, &taken,
                               &need)
    if status != OK:
        raise ValueError(
            f"response {count} at byte {taken} is not a {protocol} response of at most {frame_bytes_max} bytes"
        )
    return count, taken, need


def cut(const uint8_t[::1] buffer, uint32_t frame_bytes_max, rows):
    """Cut whole responses from `buffer` into `rows` (dtype RESPONSE); return (count, bytes taken, bytes needed).

    "needed" is the size of the unfinished frame after them, 0 while unknown. `body_at` counts from the start of the
    buffer. ValueError if the peer broke the framing rules: the connection cannot be used any more.
    """
    return cut_rows(buffer, frame_bytes_max, rows, response_row, "V2")
