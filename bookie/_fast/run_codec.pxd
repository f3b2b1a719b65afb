"""Packed runs and ledger records: the values of the location index, byte by byte (docs/formats/index.md).

No state, no allocation, any thread. What is unpacked points into the caller's value and lives as long as that.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from bookie._fast.types cimport Status

cdef enum:
    RUN_SLOTS_MAX = 1024         # entry ids (gaps included) one stored run may span
    RUN_KEY_BYTES = 16           # i64 ledger | i64 first entry
    RUN_HEADER_BYTES = 24
    # The largest value of which six, with their keys and node headers, fill an LMDB page of 4 KiB.
    RUN_VALUE_MAX = 654
    RUN_VERSION = 1

    LEDGER_KEY_BYTES = 8
    LEDGER_HEADER_BYTES = 12
    LEDGER_VERSION = 1
    LEDGER_FENCED = 1
    LEDGER_LIMBO = 2
    LEDGER_QUARANTINED = 4
    LEDGER_REASON_SHIFT = 4      # the bits from here on: why it is in quarantine, a QuarantineReason
    FENCE_VERSION = 1
    FENCE_VALUE_BYTES = 16
    MASTER_KEY_MAX = 0xFFFF
    LAC_MAX = 1 << 20

cdef enum QuarantineReason:
    # What a ledger has here that could not be stored, indexed or trusted. Numbers are on disk.
    NOT_QUARANTINED = 0
    BAD_ENTRY_ID = 1             # an entry id outside of what the index holds
    BAD_ENTRY_SIZE = 2           # a record longer than a log takes
    BAD_KEYS = 3                 # the journal holds master keys that contradict each other
    BAD_LAC = 4                  # an explicit LAC that is none
    BAD_LEDGER_RECORD = 5        # the ledger's record in the index cannot be read
    BAD_INDEX = 6                # runs of the ledger in the index cannot be read
    BAD_RECORD = 7               # a record in an entry log is not the one that the index tells, or fails its digest
    REASONS = 8

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
    uint32_t count
    uint32_t log_id
    uint64_t offset
    uint32_t base                # length of a slot that stores 1
    uint32_t width               # bytes a slot: 0 (each one holds `base` bytes) to 4
    const uint8_t* slots

# Pack a prefix of `run` into value[RUN_VALUE_MAX], as many slots as fit, ending in a present one. Answers its slots,
# >= 1. run.lengths[0] is present; `key` is written too.
cdef uint32_t run_pack(const IndexRun* run, uint8_t* key, uint8_t* value, size_t* size) noexcept nogil
# OK or CORRUPT.
cdef Status run_unpack(const void* key, size_t key_size, const void* value, size_t size, StoredRun* run) noexcept nogil
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
# OK or CORRUPT.
cdef Status ledger_unpack(const void* key, size_t key_size, const void* value, size_t size,
                          LedgerRecord* record) noexcept nogil

# The fence of a deleted ledger: its key is LEDGER_KEY_BYTES, its value FENCE_VALUE_BYTES.
cdef void fence_pack(int64_t ledger, int64_t deleted_ms, uint8_t* key, uint8_t* value) noexcept nogil
# OK or CORRUPT.
cdef Status fence_unpack(const void* key, size_t key_size, const void* value, size_t size, int64_t* ledger,
                         int64_t* deleted_ms) noexcept nogil
