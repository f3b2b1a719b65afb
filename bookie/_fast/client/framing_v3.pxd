"""The client's side of V3: batches of ADD frames, responses as rows of a table, and the entries of a batch response.

No sockets, no state; any thread. The caller owns all buffers. Everything that is not bulk data goes through the
protobuf library instead.
"""
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.client.framing_v2 cimport Response
from bookie._fast.wire.digest cimport Digest, Digester

cdef struct AddBatchV3:
    int64_t ledger
    int64_t first                # entry id of the first payload
    int64_t lac                  # written into each entry
    int64_t length               # payload bytes of the ledger before this batch
    uint64_t transaction         # of the first frame; those of the others count up from it
    uint32_t priority            # 0 is left out of the frame
    uint32_t write_flags         # 0 is left out of the frame
    uint32_t recovery            # 1: flag RECOVERY_ADD
    const uint8_t* key
    uint32_t key_size
    const Digest* digest

# Return the bytes of the ADD frame, length word included, that stores a payload of `size` bytes as entry `id`.
cdef int64_t add_frame_v3_size(const AddBatchV3* batch, int64_t id, int64_t size) noexcept nogil

# Write the frames of payloads[offsets[k]:offsets[k + 1]] to `out`, one after the other. `out` has room for the sum of
# their add_frame_v3_size.
cdef void add_frames_v3(const AddBatchV3* batch, const uint8_t* payloads, const int64_t* offsets, int64_t count,
                        uint8_t* out) noexcept nogil

# Write the frames of entries as stored, where records[offsets[k]:offsets[k + 1]] is `u32 size | entry` and is sent as
# entries[k]. `first`, `lac`, `length` and `digest` are not used.
cdef void stored_frames_v3(const AddBatchV3* batch, const uint8_t* records, const int64_t* offsets,
                           const int64_t* entries, int64_t count, uint8_t* out) noexcept nogil

# A response_fn (framing_v2). `op` of the row is V3's OperationType, `code` the StatusCode, `request_id` the
# transaction id, and the body the whole Response. CORRUPT also if the status, the operation or the transaction is
# missing.
cdef Status response_v3_row(const uint8_t* body, uint32_t size, Response* row) noexcept nogil

cdef struct BatchAnswer:
    size_t at                    # of the first entry's tag in the Response
    size_t end
    int64_t count
    size_t run_bytes             # size of the entries as `u32 length | entry`
    bint in_place                # the entries follow each other, each after exactly 4 bytes
    bint has_lac
    int64_t lac

# Find the entries in a Response that holds a BatchReadResponse. Return OK, or CORRUPT if it holds none or is torn.
cdef Status batch_answer_find(const uint8_t* body, size_t size, BatchAnswer* answer) noexcept nogil
# With `in_place`: make body[at, end) a run of `u32 length | entry`.
cdef void patch_run(uint8_t* body, const BatchAnswer* answer) noexcept nogil
# Otherwise: copy the entries to `out` as such a run of `run_bytes`.
cdef void copy_run(const uint8_t* body, size_t size, uint8_t* out) noexcept nogil

cdef class AddFramerV3:
    cdef readonly Digester digester
    cdef readonly int64_t ledger
    cdef bytes key
    cdef AddBatchV3 batch
    cdef uint32_t frame_bytes_max
