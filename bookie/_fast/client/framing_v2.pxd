"""The client's side of V2: batches of ADD frames, single requests, and responses as rows of a table.

No sockets, no state; any thread. The caller owns all buffers.
"""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from bookie._fast.base.types cimport MASTER_KEY_BYTES, Status
from bookie._fast.wire.digest cimport Digest, Digester

cdef struct AddBatch:
    int64_t ledger
    int64_t first                # entry id of the first payload
    int64_t lac                  # written into each entry
    int64_t length               # payload bytes of the ledger before this batch
    uint32_t flags
    const uint8_t* key           # 20 bytes
    const Digest* digest

cdef packed struct Response:
    # One row of the table, a numpy record array in Python. `entry` is the first entry of a BATCH_READ.
    int32_t op
    int32_t code                 # of the response; 0 for AUTH
    int64_t ledger
    int64_t entry
    int64_t request_id           # BATCH_READ, else 0
    int64_t body_at              # offset of the payload in the receive buffer
    int64_t body_size

# Bytes before the payload in an ADD frame, including the length word, not including the digest.
cdef enum:
    ADD_FRAME_FIXED = 60

# Write the frames of payloads[offsets[k]:offsets[k + 1]] to `out`, one after the other. `out` has room for count *
# (ADD_FRAME_FIXED + digest.size) bytes and the payloads.
cdef void add_frames(const AddBatch* batch, const uint8_t* payloads, const int64_t* offsets, int64_t count,
                     uint8_t* out) noexcept nogil

# Return whether a body is the V3 response to START_TLS. Inside TLS, Java's bookie sends it unasked to a client that has
# not authenticated by then.
cdef bint is_start_tls(const uint8_t* body, uint32_t size) noexcept nogil

# Fill a row from the body of one response; `body_at` counts from `body`. Return OK, or CORRUPT if it is not a
# response of the protocol: a frame shorter than its fields, or an unknown operation.
ctypedef Status (*response_fn)(const uint8_t* body, uint32_t size, Response* row) noexcept nogil

# Write a BATCH_READ frame and return its size, at most BATCH_FRAME_BYTES_MAX. `key` has 20 bytes, or is NULL.
cdef uint32_t batch_frame_v2(int64_t ledger, int64_t start, int64_t request_id, int32_t count_max, int64_t size_max,
                             uint32_t flags, const uint8_t* key, uint8_t* out) noexcept nogil

# V2's response_fn.
cdef Status response_row(const uint8_t* body, uint32_t size, Response* row) noexcept nogil

# The implementation of `cut` in both protocols. `protocol` is its name in the error text.
cdef tuple cut_rows(const uint8_t[::1] buffer, uint32_t frame_bytes_max, rows, response_fn fill, protocol)

# Write the frames of entries as stored, where records[offsets[k]:offsets[k + 1]] is `u32 size | entry`. `out` has
# room for the records and count * ADD_ENTRY_AT bytes.
cdef void stored_frames(const uint8_t* key, uint32_t flags, const uint8_t* records, const int64_t* offsets,
                        int64_t count, uint8_t* out) noexcept nogil

# Raise ValueError unless each record lies inside `records` and fits, with `fixed` bytes more, into a frame.
cdef int records_fit(const uint8_t[::1] records, const int64_t[::1] offsets, int64_t fixed,
                     uint32_t frame_bytes_max) except -1

cdef class AddFramer:
    cdef readonly Digester digester
    cdef readonly int64_t ledger
    cdef readonly int64_t payload_max    # payload bytes that one frame can carry
    cdef uint32_t flags
    cdef uint8_t key[MASTER_KEY_BYTES]
    cdef int64_t overhead
