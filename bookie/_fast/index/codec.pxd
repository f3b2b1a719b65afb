"""Packed runs and ledger records: the values of the location index, byte by byte (docs/formats/index.md).

No state, no allocation, any thread. What is unpacked points into the caller's value and lives as long as that.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.index.key cimport RunKey

cdef enum:
    RUN_SLOTS_MAX = 1024         # entry ids (gaps included) one stored run may span
    RUN_KEY_BYTES = 16           # i64 ledger | i64 first entry
    RUN_HEADER_BYTES = 40
    HEAD_KEY_BYTES = 1           # a byte of zero, below every run
    # The largest value of which six, with their keys and node headers, fill an LMDB page of 4 KiB.
    RUN_VALUE_MAX = 654
    LEDGER_KEY_BYTES = 8
    FENCE_VALUE_BYTES = 16

cdef enum QuarantineReason:
    NOT_QUARANTINED = 0          # these numbers are on disk
    BAD_ENTRY_ID = 1             # an entry id outside of what the index holds
    BAD_ENTRY_SIZE = 2           # a record longer than a log takes
    BAD_KEYS = 3                 # the journal holds master keys that contradict each other
    BAD_LAC = 4                  # an explicit LAC that is none
    BAD_LEDGER_RECORD = 5        # the ledger's record in the index cannot be read
    BAD_INDEX = 6                # runs of the ledger in the index cannot be read
    BAD_RECORD = 7               # a record in an entry log is not the one that the index tells, or fails its digest

cdef struct IndexRun:
    int64_t ledger
    int64_t first                # entry id of lengths[0]
    uint32_t count               # slots; lengths[0] and lengths[count - 1] are never 0
    uint32_t log_id
    uint64_t offset              # of the first record's length word in its log; records lie without a gap
    const uint32_t* lengths      # entry bytes without the prefix; 0 = this id is not in the run

cdef struct LedgerRecord:
    int64_t ledger
    bint fenced
    bint limbo
    uint8_t quarantine           # a QuarantineReason
    uint32_t key_size
    const uint8_t* key           # master key
    uint32_t lac_size            # 0 = no explicit LAC
    const uint8_t* lac           # the packet `ledger, lac, digest` as written by the client

cdef struct StoredRun:
    # A run still packed. Slot i holds entry first + i.
    int64_t ledger
    int64_t first
    RunKey next                  # of the run behind it in the table, of whatever ledger; key_end(): there is none
    uint32_t count               # 0: the head of the chain, which holds no entries and belongs to no ledger
    uint32_t log_id
    uint64_t offset
    uint32_t base                # length of a slot that stores 1
    uint32_t width               # bytes a slot: 0 (each one holds `base` bytes) to 4
    const uint8_t* slots

cdef inline RunKey key_of(const StoredRun* run) noexcept nogil:
    return RunKey(run.ledger, run.first)

# Pack a prefix of `run` into value[RUN_VALUE_MAX], as many slots as fit, ending in a present one. Answers its slots,
# >= 1. run.lengths[0] is present; `key` is written too. The next run is the first present slot left, else `next`.
cdef uint32_t run_pack(const IndexRun* run, RunKey next, uint8_t* key, uint8_t* value, size_t* size) noexcept nogil
# The head of the chain: its key is HEAD_KEY_BYTES, its value RUN_HEADER_BYTES.
cdef void head_pack(RunKey next, uint8_t* key, uint8_t* value) noexcept nogil
# The packed run, or head, `value` with another next, into `out`.
cdef void run_relink(const void* key, size_t key_size, const void* value, size_t size, RunKey next,
                     uint8_t* out) noexcept nogil
# A run or the head. OK or CORRUPT.
cdef Status run_unpack(const void* key, size_t key_size, const void* value, size_t size, StoredRun* run) noexcept nogil
# The same of a run of version 1, without a next one: run.next is key_end().
cdef Status run_unpack_unchained(const void* key, size_t key_size, const void* value, size_t size,
                                 StoredRun* run) noexcept nogil
# The same run at another place, packed: into `key` and value[RUN_VALUE_MAX]; the value's size.
cdef size_t run_repack(const StoredRun* run, uint32_t log_id, uint64_t offset, uint8_t* key,
                       uint8_t* value) noexcept nogil
# Length of the entry in `slot` < count; 0 = not in the run.
cdef uint32_t run_length(const StoredRun* run, uint32_t slot) noexcept nogil
# Bytes of the records (prefixes included) in slots [start, end), end <= count, and how many they are.
cdef uint64_t run_bytes(const StoredRun* run, uint32_t start, uint32_t end, uint32_t* present) noexcept nogil
# All lengths, into out[count].
cdef void run_lengths(const StoredRun* run, uint32_t* out) noexcept nogil

cdef size_t ledger_packed_size(const LedgerRecord* record) noexcept nogil
# `value` holds ledger_packed_size(record) bytes.
cdef void ledger_pack(const LedgerRecord* record, uint8_t* key, uint8_t* value) noexcept nogil
# What one that cannot be read still tells, its ledger: as fenced and in quarantine. CORRUPT: not even that.
cdef Status ledger_forgive(const void* key, size_t key_size, LedgerRecord* record) noexcept nogil
# OK or CORRUPT.
cdef Status ledger_unpack(const void* key, size_t key_size, const void* value, size_t size,
                          LedgerRecord* record) noexcept nogil
# The fence of a deleted ledger: its key is LEDGER_KEY_BYTES, its value FENCE_VALUE_BYTES.
cdef void fence_pack(int64_t ledger, int64_t deleted_ms, uint8_t* key, uint8_t* value) noexcept nogil
# OK or CORRUPT.
cdef Status fence_unpack(const void* key, size_t key_size, const void* value, size_t size, int64_t* ledger,
                         int64_t* deleted_ms) noexcept nogil
