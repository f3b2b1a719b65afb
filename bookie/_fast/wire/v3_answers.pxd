"""Writing of V3 responses into buffers. No sockets, no allocation; any thread.

Each function also writes the frame's length word, returns how many bytes it wrote, and needs as much space as the
constants say. With the bodies in place, the bytes are those that the protobuf library would write, except that the
lengths of batch entries are padded.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.wire.request cimport Request

cdef enum:
    V3_ANSWER_MOST = 64          # bytes of a whole response without a body
    V3_HEAD_MOST = 72            # bytes before a body
    V3_TAIL_MOST = 24            # bytes after it
    V3_ENTRY_MOST = 6            # bytes before an entry of a batch
    V3_ENTRY_PREFIX = 4          # the same for an entry below V3_ENTRY_SMALL: as many as a record's length word has
    V3_ENTRY_SMALL = 1 << 21

cdef struct V3Tail:
    # The bytes after the bodies of a read: maxLAC and lacUpdateTimestamp, or nothing.
    uint32_t size
    uint8_t bytes[V3_TAIL_MOST]

# Write a response of a copy of the request's header and a status. Needs V3_ANSWER_MOST.
cdef uint32_t v3_refusal(uint8_t* out, const Request* request, Status status) noexcept nogil
# Write the operation's response without bodies: any status of ADD_ENTRY, WRITE_LAC, FORCE_LEDGER, WRITE_CLOSE and
# START_TLS, and errors of all others but AUTH. `entry` is written if the message has one. Needs V3_ANSWER_MOST.
cdef uint32_t v3_answer(uint8_t* out, uint8_t op, uint64_t txn, Status status, int64_t ledger,
                        int64_t entry) noexcept nogil
cdef void v3_tail(V3Tail* tail, bint has_lac, int64_t lac, bint has_time, int64_t time_ms) noexcept nogil
# Write a successful READ_ENTRY up to its body of `body_size` bytes, if `has_body`; the tail follows. Needs
# V3_HEAD_MOST.
cdef uint32_t v3_read_head(uint8_t* out, uint64_t txn, int64_t ledger, int64_t entry, bint has_body, uint32_t body_size,
                           const V3Tail* tail) noexcept nogil
# Write a READ_LAC with any status, up to `entry_size` bytes if `has_entry`. `lac` is copied, and absent if it is
# NULL. Needs V3_HEAD_MOST + lac_size.
cdef uint32_t v3_read_lac_head(uint8_t* out, uint64_t txn, Status status, int64_t ledger, const uint8_t* lac,
                               uint32_t lac_size, bint has_entry, uint32_t entry_size) noexcept nogil
# Write a successful BATCH_READ_ENTRY up to `entries_bytes` of prefixes and entries; the tail follows. Needs
# V3_HEAD_MOST.
cdef uint32_t v3_batch_head(uint8_t* out, uint64_t txn, int64_t ledger, int64_t start, uint32_t entries_bytes,
                            const V3Tail* tail) noexcept nogil
# Write the prefix of an entry of a batch: V3_ENTRY_PREFIX bytes if the entry is small, else up to V3_ENTRY_MOST.
cdef uint32_t v3_entry_prefix(uint8_t* out, uint32_t entry_size) noexcept nogil
# Convert whole records `u32 length | entry`, all below V3_ENTRY_SMALL, to entries of a batch, in place.
cdef void v3_entries(uint8_t* run, uint64_t size) noexcept nogil
