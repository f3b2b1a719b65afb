"""Packed runs and ledger records: the byte layout of the location index's values (docs/formats/index.md).

No state, no allocation, any thread. Unpacked structs point into the caller's value, and are valid as long as that is.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.index.key cimport RunKey

cdef enum:
    RUN_SLOTS_MAX = 1024         # entry ids, gaps included, that a stored run may span
    RUN_KEY_BYTES = 16           # i64 ledger | i64 first entry
    RUN_HEADER_BYTES = 40
    HEAD_KEY_BYTES = 1           # the head's key is one zero byte, which sorts before all runs
    # The largest value of which six, with their keys and node headers, fit into an LMDB page of 4 KiB.
    RUN_VALUE_MAX = 654
    LEDGER_KEY_BYTES = 8
    FENCE_VALUE_BYTES = 16

cdef enum QuarantineReason:
    NOT_QUARANTINED = 0          # these numbers are stored on disk
    BAD_ENTRY_ID = 1             # an entry id that the index cannot hold
    BAD_ENTRY_SIZE = 2           # a record longer than a log takes
    BAD_KEYS = 3                 # the journal holds master keys that contradict each other
    BAD_LAC = 4                  # an explicit LAC that is invalid
    BAD_LEDGER_RECORD = 5        # the ledger's record in the index is unreadable
    BAD_INDEX = 6                # runs of the ledger in the index are unreadable
    BAD_RECORD = 7               # a record in an entry log differs from what the index says, or has a bad digest

cdef struct IndexRun:
    int64_t ledger
    int64_t first                # entry id of lengths[0]
    uint32_t count               # slots; lengths[0] and lengths[count - 1] are not 0
    uint32_t log_id
    uint64_t offset              # of the first record's length word in its log; the records follow without a gap
    const uint32_t* lengths      # entry bytes without the length word; 0: this id is not in the run

cdef struct LedgerRecord:
    int64_t ledger
    bint fenced
    bint limbo
    uint8_t quarantine           # a QuarantineReason
    uint32_t key_size
    const uint8_t* key           # master key
    uint32_t lac_size            # 0: no explicit LAC
    const uint8_t* lac           # the packet `ledger, lac, digest` as written by the client

cdef struct StoredRun:
    # A run in packed form. Slot i holds entry first + i.
    int64_t ledger
    int64_t first
    RunKey next                  # of the next run in the table, of any ledger; key_end() for the last one
    uint32_t count               # 0: the head of the chain, which holds no entries and belongs to no ledger
    uint32_t log_id
    uint64_t offset
    uint32_t base                # length of a slot that stores 1
    uint32_t width               # bytes for each slot, 0 to 4; with 0 all entries have `base` bytes
    const uint8_t* slots

cdef inline RunKey key_of(const StoredRun* run) noexcept nogil:
    return RunKey(run.ledger, run.first)

# Pack as many slots of `run` as fit into value[RUN_VALUE_MAX], ending with a present one, and write `key`. Return
# their number, >= 1. run.lengths[0] is present. The next run is named as the first present slot left, else `next`.
cdef uint32_t run_pack(const IndexRun* run, RunKey next, uint8_t* key, uint8_t* value, size_t* size) noexcept nogil
# Pack the head of the chain: its key has HEAD_KEY_BYTES, its value RUN_HEADER_BYTES.
cdef void head_pack(RunKey next, uint8_t* key, uint8_t* value) noexcept nogil
# Copy the packed run or head `value` to `out` with another `next`.
cdef void run_relink(const void* key, size_t key_size, const void* value, size_t size, RunKey next,
                     uint8_t* out) noexcept nogil
# Unpack a run or the head. Return OK or CORRUPT.
cdef Status run_unpack(const void* key, size_t key_size, const void* value, size_t size, StoredRun* run) noexcept nogil
# The same for a run of version 1, which does not name the next one: run.next is key_end().
cdef Status run_unpack_unchained(const void* key, size_t key_size, const void* value, size_t size,
                                 StoredRun* run) noexcept nogil
# Pack the same run at another place into `key` and value[RUN_VALUE_MAX]; return the value's size.
cdef size_t run_repack(const StoredRun* run, uint32_t log_id, uint64_t offset, uint8_t* key,
                       uint8_t* value) noexcept nogil
# Return the length of the entry in `slot` < count, or 0 if it is not in the run.
cdef uint32_t run_length(const StoredRun* run, uint32_t slot) noexcept nogil
# Return the bytes of the records (length words included) in slots [start, end), end <= count; `present` gets their
# count.
cdef uint64_t run_bytes(const StoredRun* run, uint32_t start, uint32_t end, uint32_t* present) noexcept nogil
# Write the lengths of all slots to out[count].
cdef void run_lengths(const StoredRun* run, uint32_t* out) noexcept nogil

cdef size_t ledger_packed_size(const LedgerRecord* record) noexcept nogil
# `value` has room for ledger_packed_size(record) bytes.
cdef void ledger_pack(const LedgerRecord* record, uint8_t* key, uint8_t* value) noexcept nogil
# Make the record of a ledger whose value is unreadable from its key: fenced and in quarantine. CORRUPT: a bad key.
cdef Status ledger_forgive(const void* key, size_t key_size, LedgerRecord* record) noexcept nogil
# Return OK or CORRUPT.
cdef Status ledger_unpack(const void* key, size_t key_size, const void* value, size_t size,
                          LedgerRecord* record) noexcept nogil
# Pack the fence of a deleted ledger: its key has LEDGER_KEY_BYTES, its value FENCE_VALUE_BYTES.
cdef void fence_pack(int64_t ledger, int64_t deleted_ms, uint8_t* key, uint8_t* value) noexcept nogil
# Return OK or CORRUPT.
cdef Status fence_unpack(const void* key, size_t key_size, const void* value, size_t size, int64_t* ledger,
                         int64_t* deleted_ms) noexcept nogil
