"""V3 answers into buffers. No sockets, no allocation; any thread.

Writers write the frame's length word too, tell how many bytes they wrote, and need as many bytes of room as the
constants say. What they write, with the bodies where they belong, is what the protobuf library would write, except that
lengths of batch entries are padded.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.wire.request cimport Request

cdef enum:
    V3_ANSWER_MOST = 64          # bytes of a whole answer without a body
    V3_HEAD_MOST = 72            # bytes in front of a body
    V3_TAIL_MOST = 24            # bytes behind it
    V3_ENTRY_MOST = 6            # bytes in front of an entry of a batch
    V3_ENTRY_PREFIX = 4          # the same for an entry below V3_ENTRY_SMALL: as much as a record's length word
    V3_ENTRY_SMALL = 1 << 21

cdef struct V3Tail:
    # What follows the body or bodies of a read: maxLAC and lacUpdateTimestamp, or nothing.
    uint32_t size
    uint8_t bytes[V3_TAIL_MOST]

# A copy of the request's header, and a status: V3_ANSWER_MOST.
cdef uint32_t v3_refusal(uint8_t* out, const Request* request, Status status) noexcept nogil
# The operation's own answer, without bodies: any status of ADD_ENTRY, WRITE_LAC, FORCE_LEDGER, WRITE_CLOSE and
# START_TLS, errors of the others but AUTH. `entry` where the message has one. V3_ANSWER_MOST.
cdef uint32_t v3_answer(uint8_t* out, uint8_t op, uint64_t txn, Status status, int64_t ledger,
                        int64_t entry) noexcept nogil
cdef void v3_tail(V3Tail* tail, bint has_lac, int64_t lac, bint has_time, int64_t time_ms) noexcept nogil
# A good READ_ENTRY in front of `body_size` bytes (no `has_body`: in front of nothing) and then the tail. V3_HEAD_MOST.
cdef uint32_t v3_read_head(uint8_t* out, uint64_t txn, int64_t ledger, int64_t entry, bint has_body, uint32_t body_size,
                           const V3Tail* tail) noexcept nogil
# A READ_LAC with any status, in front of `entry_size` bytes when `has_entry`. `lac` is copied; NULL: absent.
# V3_HEAD_MOST + lac_size.
cdef uint32_t v3_read_lac_head(uint8_t* out, uint64_t txn, Status status, int64_t ledger, const uint8_t* lac,
                               uint32_t lac_size, bint has_entry, uint32_t entry_size) noexcept nogil
# A good BATCH_READ_ENTRY in front of `entries_bytes`, prefixes counted, and then the tail. V3_HEAD_MOST.
cdef uint32_t v3_batch_head(uint8_t* out, uint64_t txn, int64_t ledger, int64_t start, uint32_t entries_bytes,
                            const V3Tail* tail) noexcept nogil
# What stands in front of an entry of a batch: V3_ENTRY_PREFIX bytes when it is small, up to V3_ENTRY_MOST.
cdef uint32_t v3_entry_prefix(uint8_t* out, uint32_t entry_size) noexcept nogil
# Turn whole records `u32 length | entry`, all below V3_ENTRY_SMALL, into entries of a batch, in place.
cdef void v3_entries(uint8_t* run, uint64_t size) noexcept nogil
