"""V2 requests: from the body of a frame to a Request, and from a Status to the code on the wire.

Runs on the I/O loop. Nothing is copied: the pointers of a request refer to the frame and are valid as long as it is.
"""
from libc.stddef cimport size_t
from libc.string cimport memset

from bookie._fast.base.bounds cimport ids_hold
from bookie._fast.base.cursor cimport load_u64
from bookie._fast.base.planted cimport PLANT_SHORT_LEDGER_IDS, bk_planted
from bookie._fast.base.types cimport (
    BAD_REQUEST,
    BAD_VERSION,
    CLOSED,
    CORRUPT,
    ENTRY_HEADER_MIN,
    ENTRY_LAC_MIN,
    FENCED,
    FULL,
    IO_ERROR,
    NO_ENTRY,
    NO_LEDGER,
    NO_MEMORY,
    NO_SPACE,
    OK,
    READ_ONLY,
    TOO_MANY_REQUESTS,
    TORN,
    UNAUTHORIZED,
    UNKNOWN_STATE,
)


cdef enum:
    PROTOCOL = 2


cdef Status parse_add(const uint8_t* frame, uint32_t size, Request* request) noexcept nogil:
    if size < ADD_ENTRY_AT or size - ADD_ENTRY_AT < ENTRY_HEADER_MIN:
        return CLOSED
    request.op = ADD_ENTRY
    request.key = frame + 4
    request.key_size = MASTER_KEY_BYTES
    request.body = frame + ADD_ENTRY_AT
    request.body_size = size - ADD_ENTRY_AT
    request.ledger = load_i64(request.body)
    request.entry = load_i64(request.body + 8)
    if request.body_size < ENTRY_LAC_MIN or not ids_hold(request.ledger, request.entry):
        return BAD_REQUEST
    return OK


cdef Status parse_key(const uint8_t* frame, uint32_t size, uint32_t at, Request* request) noexcept nogil:
    """Find the key of a fencing read: from version 2 on it must be part of the frame."""
    if not request.flags & FLAG_FENCE or <int8_t> request.version < 2:
        return OK
    if size - at < MASTER_KEY_BYTES:
        return CLOSED
    request.key = frame + at
    request.key_size = MASTER_KEY_BYTES
    return OK


cdef Status parse_read(const uint8_t* frame, uint32_t size, Request* request) noexcept nogil:
    if size < READ_BYTES:
        return CLOSED
    request.op = READ_ENTRY
    request.ledger = load_u32(frame + 8) if bk_planted(PLANT_SHORT_LEDGER_IDS) else load_i64(frame + 4)
    request.entry = load_i64(frame + 12)
    return parse_key(frame, size, READ_BYTES, request)


cdef Status parse_batch_read(const uint8_t* frame, uint32_t size, Request* request) noexcept nogil:
    if size < BATCH_BYTES:
        return CLOSED
    request.op = BATCH_READ_ENTRY
    request.ledger = load_i64(frame + 4)
    request.entry = load_i64(frame + 12)
    request.request_id = load_u64(frame + 20)
    request.count_max = load_i32(frame + 28)
    request.size_max = load_i64(frame + 32)
    return parse_key(frame, size, BATCH_BYTES, request)


cdef Status v2_parse(const uint8_t* frame, uint32_t size, Request* request) noexcept nogil:
    cdef uint32_t header
    cdef uint8_t opcode
    memset(request, 0, sizeof(Request))
    request.protocol = PROTOCOL
    if size < 4:
        return CLOSED
    header = load_u32(frame)
    request.version = <uint8_t> (header >> 24)
    if request.version == 0:
        opcode = <uint8_t> header
    else:
        opcode = <uint8_t> (header >> 16)
        request.flags = header & FLAGS_KNOWN
    if opcode == OP_ADD:
        return parse_add(frame, size, request)
    if opcode == OP_READ:
        return parse_read(frame, size, request)
    if opcode == OP_BATCH_READ:
        return parse_batch_read(frame, size, request)
    if opcode == OP_AUTH:
        request.op = AUTH
        request.body = frame + 4
        request.body_size = size - 4
        return OK
    return CLOSED


cdef int32_t v2_code(Status status) noexcept nogil:
    if status == OK:
        return EOK
    if status == NO_LEDGER:
        return ENOLEDGER
    if status == NO_ENTRY:
        return ENOENTRY
    if status == UNAUTHORIZED:
        return EUA
    if status == BAD_VERSION:
        return EBADVERSION
    if status == FENCED:
        return EFENCED
    if status == READ_ONLY:
        return EREADONLY
    if status == TOO_MANY_REQUESTS or status == FULL:
        return ETOOMANYREQUESTS
    if (status == IO_ERROR or status == UNKNOWN_STATE or status == CORRUPT or status == TORN or status == NO_SPACE
            or status == NO_MEMORY):
        return EIO_CODE
    return EBADREQ


cdef bytes _key_bytes(const Request* request):
    return None if request.key == NULL else (<const char*> request.key)[:request.key_size]


cdef bytes _body_bytes(const Request* request):
    return None if request.body == NULL else (<const char*> request.body)[:request.body_size]


def parse(const uint8_t[::1] frame):
    """Parse the body of a frame (no length word) and return (status, fields). For tests and tools, not the data path.
    """
    cdef Request request
    cdef size_t size = frame.shape[0]
    cdef Status status = v2_parse(&frame[0] if size else NULL, <uint32_t> size, &request)
    fields = {
        "op": v2_opcode(request.op),
        "version": request.version,
        "flags": request.flags,
        "ledger": request.ledger,
        "entry": request.entry,
        "request_id": <int64_t> request.request_id,
        "count_max": request.count_max,
        "size_max": request.size_max,
        "key": _key_bytes(&request),
        "body": _body_bytes(&request),
    }
    return <int> status, fields


def code(int status):
    """Return the V2 code of a Status number."""
    return v2_code(<Status> status)


def answer(int version, int op, int code, int64_t ledger, int64_t entry, payload=b""):
    """Return a whole response to ADD or READ, length word included."""
    cdef uint8_t head[FRAME_PREFIX + ANSWER_BYTES]
    v2_answer(head, <uint8_t> version, <uint8_t> op, code, ledger, entry, <uint32_t> len(payload))
    return (<const char*> head)[:sizeof(head)] + bytes(payload)


def batch_answer(int version, int code, int64_t ledger, int64_t start, int64_t request_id, records=b""):
    """Return a whole response to BATCH_READ with `records`, a run of `u32 length | entry`."""
    cdef uint8_t head[FRAME_PREFIX + BATCH_ANSWER_BYTES]
    v2_batch_answer(head, <uint8_t> version, code, ledger, start, request_id, <uint32_t> len(records))
    return (<const char*> head)[:sizeof(head)] + bytes(records)
