"""V2 wire layouts: constants, codes, parsing of requests and writing of responses. No allocation; any thread.

A frame is `u32 length | body`; all offsets below count from the start of the body.
"""
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.cursor cimport load_i32, load_i64, load_u32, store_i64, store_u32, store_u64
from bookie._fast.base.types cimport MASTER_KEY_BYTES, Status
from bookie._fast.wire.request cimport ADD_ENTRY, AUTH, BATCH_READ_ENTRY, READ_ENTRY, Request

cdef enum:
    OP_ADD = 1
    OP_READ = 2
    OP_AUTH = 3
    OP_BATCH_READ = 7

    FLAG_FENCE = 0x0001
    FLAG_RECOVERY_ADD = 0x0002
    FLAG_HIGH_PRIORITY = 0x0004
    FLAGS_KNOWN = 0x0007

    VERSION_MAX = 2
    FRAME_PREFIX = 4
    ADD_ENTRY_AT = 24            # after header and master key: the entry as stored
    READ_BYTES = 20              # header, ledger, entry
    BATCH_BYTES = 40             # header, ledger, start, request id, max count, max size
    ANSWER_BYTES = 24            # header, code, ledger, entry: responses to ADD and READ
    BATCH_ANSWER_BYTES = 32      # the same and the request id

    # Error codes on the wire.
    EOK = 0
    ENOLEDGER = 1
    ENOENTRY = 2
    EBADREQ = 100
    EIO_CODE = 101
    EUA = 102
    EBADVERSION = 103
    EFENCED = 104
    EREADONLY = 105
    ETOOMANYREQUESTS = 106

# Parse the body of a frame. Return OK; BAD_REQUEST if the response must be EBADREQ; CLOSED if the peer broke the
# framing rules. With OK and BAD_REQUEST, op, version, ledger and entry are set. The version is not checked here,
# because EBADVERSION takes precedence over EBADREQ.
cdef Status v2_parse(const uint8_t* frame, uint32_t size, Request* request) noexcept nogil

# Return V2's code of a Status. UNKNOWN_STATE becomes EIO: Java's V2 client drops the connection on the unknown code
# 107.
cdef int32_t v2_code(Status status) noexcept nogil

cdef inline bint v2_version_ok(uint8_t version) noexcept nogil:
    return version <= VERSION_MAX

cdef inline uint8_t v2_opcode(uint8_t op) noexcept nogil:
    """Return the opcode of an Operation, or 0 if V2 has none."""
    if op == ADD_ENTRY:
        return OP_ADD
    if op == READ_ENTRY:
        return OP_READ
    if op == BATCH_READ_ENTRY:
        return OP_BATCH_READ
    return OP_AUTH if op == AUTH else 0

cdef inline uint32_t v2_header(uint8_t version, uint8_t op, uint32_t flags) noexcept nogil:
    """Return the packet header word; version 0 has neither flags nor a version byte."""
    if version == 0:
        return op
    return (<uint32_t> version << 24) | (<uint32_t> op << 16) | (flags & 0xFFFF)

cdef inline void v2_answer(uint8_t* out, uint8_t version, uint8_t op, int32_t code, int64_t ledger, int64_t entry,
                           uint32_t payload) noexcept nogil:
    """Write the 28 bytes (length word included) before the `payload` entry bytes of a response to ADD or READ."""
    store_u32(out, ANSWER_BYTES + payload)
    store_u32(out + 4, v2_header(version, op, 0))
    store_u32(out + 8, <uint32_t> code)
    store_i64(out + 12, ledger)
    store_i64(out + 20, entry)

cdef inline void v2_batch_answer(uint8_t* out, uint8_t version, int32_t code, int64_t ledger, int64_t start,
                                 uint64_t request_id, uint32_t payload) noexcept nogil:
    """Write the 36 bytes (length word included) before the `payload` bytes of `u32 length | entry` records."""
    store_u32(out, BATCH_ANSWER_BYTES + payload)
    store_u32(out + 4, v2_header(version, OP_BATCH_READ, 0))
    store_u32(out + 8, <uint32_t> code)
    store_i64(out + 12, ledger)
    store_i64(out + 20, start)
    store_u64(out + 28, request_id)
