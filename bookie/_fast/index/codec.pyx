"""Packs and unpacks the values of the location index. Any thread; no state.

A slot stores `length - base + 1`, or 0 for an id that is not in the run; base is the least length present. So a run of
equal lengths needs no slots at all, and the size of consecutive records is one sum:
    stored values + present slots * (base - 1 + prefix).
Each value names the next run of the table, covered by its checksum, so that a reader can prove what is not there.
"""
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from bookie._fast.base.crc cimport crc32c
from bookie._fast.base.cursor cimport load_i64, load_u16, load_u32, load_u64, store_i64, store_u16, store_u32, store_u64
from bookie._fast.base.types cimport CORRUPT, LENGTH_PREFIX, OK, Status
from bookie._fast.index.key cimport RunKey, key_before, key_end, key_equal

cdef enum:
    NEXT_AT = 24                 # in a run's value
    RUN_VERSION = 2
    RUN_VERSION_UNCHAINED = 1    # written by earlier releases, without the key of the next run; opening upgrades it
    RUN_HEADER_UNCHAINED = 24
    LEDGER_HEADER_BYTES = 12
    LEDGER_VERSION = 1
    LEDGER_FENCED = 1
    LEDGER_LIMBO = 2
    LEDGER_QUARANTINED = 4
    LEDGER_REASON_SHIFT = 4      # the bits from here on hold the QuarantineReason
    FENCE_VERSION = 1


cdef uint32_t value_crc(const void* key, size_t key_size, const uint8_t* value, size_t size) noexcept nogil:
    """Return the checksum of the key and of the value after its first field, which holds the checksum."""
    return crc32c(crc32c(0, key, key_size), value + 4, size - 4)


cdef uint32_t slot_width(const uint32_t* lengths, uint32_t count, uint32_t* base) noexcept nogil:
    """Return how many bytes a slot of lengths[count] needs; at least one is present. `base` gets the least length."""
    cdef uint32_t low = 0xFFFFFFFF, high = 0, present = 0, i
    for i in range(count):
        if lengths[i]:
            present += 1
            low = min(low, lengths[i])
            high = max(high, lengths[i])
    base[0] = low
    if present == count and low == high:
        return 0
    if high - low < 0xFF:
        return 1
    if high - low < 0xFFFF:
        return 2
    return 3 if high - low < 0xFFFFFF else 4


cdef uint32_t run_pack(const IndexRun* run, RunKey next, uint8_t* key, uint8_t* value, size_t* size) noexcept nogil:
    cdef uint32_t count = min(run.count, <uint32_t> RUN_SLOTS_MAX)
    cdef uint32_t base, following
    cdef uint32_t width = slot_width(run.lengths, count, &base)
    if width * count > RUN_VALUE_MAX - RUN_HEADER_BYTES:
        count = (RUN_VALUE_MAX - RUN_HEADER_BYTES) // width
    while run.lengths[count - 1] == 0:
        count -= 1
    width = slot_width(run.lengths, count, &base)
    size[0] = RUN_HEADER_BYTES + width * count
    store_i64(key, run.ledger)
    store_i64(key + 8, run.first)
    value[4] = RUN_VERSION
    value[5] = <uint8_t> width
    store_u16(value + 6, <uint16_t> count)
    store_u32(value + 8, run.log_id)
    store_u64(value + 12, run.offset)
    store_u32(value + 20, base)
    following = count
    while following < run.count and run.lengths[following] == 0:
        following += 1
    if following < run.count:
        next = RunKey(run.ledger, run.first + following)
    store_next(value, next)
    store_slots(value + RUN_HEADER_BYTES, width, run.lengths, count, base)
    store_u32(value, value_crc(key, RUN_KEY_BYTES, value, size[0]))
    return count


cdef inline void store_next(uint8_t* value, RunKey next) noexcept nogil:
    store_i64(value + NEXT_AT, next.ledger)
    store_i64(value + NEXT_AT + 8, next.first)


cdef void head_pack(RunKey next, uint8_t* key, uint8_t* value) noexcept nogil:
    key[0] = 0
    memset(value, 0, RUN_HEADER_BYTES)
    value[4] = RUN_VERSION
    store_next(value, next)
    store_u32(value, value_crc(key, HEAD_KEY_BYTES, value, RUN_HEADER_BYTES))


cdef void run_relink(const void* key, size_t key_size, const void* value, size_t size, RunKey next,
                     uint8_t* out) noexcept nogil:
    memcpy(out, value, size)
    store_next(out, next)
    store_u32(out, value_crc(key, key_size, out, size))


cdef size_t run_repack(const StoredRun* run, uint32_t log_id, uint64_t offset, uint8_t* key,
                       uint8_t* value) noexcept nogil:
    cdef size_t size = RUN_HEADER_BYTES + <size_t> run.width * run.count
    store_i64(key, run.ledger)
    store_i64(key + 8, run.first)
    memcpy(value, run.slots - RUN_HEADER_BYTES, size)
    store_u32(value + 8, log_id)
    store_u64(value + 12, offset)
    store_u32(value, value_crc(key, RUN_KEY_BYTES, value, size))
    return size


cdef void store_slots(uint8_t* slots, uint32_t width, const uint32_t* lengths, uint32_t count,
                      uint32_t base) noexcept nogil:
    cdef uint32_t stored, slot, byte
    for slot in range(count if width else 0):
        stored = lengths[slot] - base + 1 if lengths[slot] else 0
        for byte in range(width):
            slots[slot * width + byte] = <uint8_t> (stored >> (8 * (width - 1 - byte)))


cdef inline uint32_t load_slot(const uint8_t* pos, uint32_t width) noexcept nogil:
    if width == 1:
        return pos[0]
    if width == 2:
        return load_u16(pos)
    if width == 3:
        return (<uint32_t> pos[0] << 16) | load_u16(pos + 1)
    return load_u32(pos)


cdef Status run_unpack(const void* key, size_t key_size, const void* value, size_t size, StoredRun* run) noexcept nogil:
    cdef const uint8_t* bytes_ = <const uint8_t*> value
    cdef Status status
    if key_size == HEAD_KEY_BYTES:
        status = unpack_head(key, bytes_, size, run)
    else:
        status = unpack(key, key_size, bytes_, size, RUN_VERSION, RUN_HEADER_BYTES, run)
    if status != OK:
        return status
    run.next = RunKey(load_i64(bytes_ + NEXT_AT), load_i64(bytes_ + NEXT_AT + 8))
    # No run follows itself, and only key_end() may name a place where no run can be.
    if run.count and not key_before(key_of(run), run.next):
        return CORRUPT
    return OK if run.next.first >= 0 or key_equal(run.next, key_end()) else CORRUPT


cdef Status run_unpack_unchained(const void* key, size_t key_size, const void* value, size_t size,
                                 StoredRun* run) noexcept nogil:
    run.next = key_end()
    return unpack(key, key_size, <const uint8_t*> value, size, RUN_VERSION_UNCHAINED, RUN_HEADER_UNCHAINED, run)


cdef Status unpack_head(const void* key, const uint8_t* value, size_t size, StoredRun* run) noexcept nogil:
    memset(run, 0, sizeof(StoredRun))
    if size != RUN_HEADER_BYTES or value[4] != RUN_VERSION or (<const uint8_t*> key)[0] != 0:
        return CORRUPT
    return OK if load_u32(value) == value_crc(key, HEAD_KEY_BYTES, value, size) else CORRUPT


cdef Status unpack(const void* key, size_t key_size, const uint8_t* value, size_t size, uint8_t version,
                   size_t header, StoredRun* run) noexcept nogil:
    if key_size != RUN_KEY_BYTES or size < header or size > RUN_VALUE_MAX or value[4] != version:
        return CORRUPT
    if load_u32(value) != value_crc(key, key_size, value, size):
        return CORRUPT
    run.ledger = load_i64(key)
    run.first = load_i64(<const uint8_t*> key + 8)
    run.width = value[5]
    run.count = load_u16(value + 6)
    run.log_id = load_u32(value + 8)
    run.offset = load_u64(value + 12)
    run.base = load_u32(value + 20)
    run.slots = value + header
    if run.width > 4 or run.count == 0 or run.count > RUN_SLOTS_MAX or run.base == 0:
        return CORRUPT
    if size - header != run.width * run.count:
        return CORRUPT
    if run.first < 0 or run.first > INT64_MAX - run.count:
        return CORRUPT
    if run_length(run, 0) == 0 or run_length(run, run.count - 1) == 0:
        return CORRUPT
    return OK


cdef uint32_t run_length(const StoredRun* run, uint32_t slot) noexcept nogil:
    cdef uint32_t stored
    if run.width == 0:
        return run.base
    stored = load_slot(run.slots + slot * run.width, run.width)
    return run.base + stored - 1 if stored else 0


cdef inline uint64_t sum_slots(const StoredRun* run, uint32_t start, uint32_t end, uint32_t width,
                               uint32_t* count) noexcept nogil:
    """Inlined once for each constant `width`, so that the loop has no branch."""
    cdef const uint8_t* pos = run.slots
    cdef uint64_t total = 0
    cdef uint32_t present = 0, slot, stored
    for slot in range(start, end):
        stored = load_slot(pos + slot * width, width)
        total += stored
        present += stored != 0
    count[0] = present
    return total + present * (<uint64_t> run.base - 1 + LENGTH_PREFIX)


cdef uint64_t run_bytes(const StoredRun* run, uint32_t start, uint32_t end, uint32_t* present) noexcept nogil:
    if run.width == 0:
        present[0] = end - start
        return (<uint64_t> run.base + LENGTH_PREFIX) * (end - start)
    if run.width == 1:
        return sum_slots(run, start, end, 1, present)
    if run.width == 2:
        return sum_slots(run, start, end, 2, present)
    if run.width == 3:
        return sum_slots(run, start, end, 3, present)
    return sum_slots(run, start, end, 4, present)


cdef void run_lengths(const StoredRun* run, uint32_t* out) noexcept nogil:
    cdef uint32_t i
    for i in range(run.count):
        out[i] = run_length(run, i)


cdef size_t ledger_packed_size(const LedgerRecord* record) noexcept nogil:
    return LEDGER_HEADER_BYTES + <size_t> record.key_size + record.lac_size


cdef void ledger_pack(const LedgerRecord* record, uint8_t* key, uint8_t* value) noexcept nogil:
    store_i64(key, record.ledger)
    value[4] = LEDGER_VERSION
    value[5] = (LEDGER_FENCED if record.fenced else 0) | (LEDGER_LIMBO if record.limbo else 0)
    if record.quarantine:
        value[5] |= LEDGER_QUARANTINED | <uint8_t> (record.quarantine << LEDGER_REASON_SHIFT)
    store_u16(value + 6, <uint16_t> record.key_size)
    store_u32(value + 8, record.lac_size)
    if record.key_size:
        memcpy(value + LEDGER_HEADER_BYTES, record.key, record.key_size)
    if record.lac_size:
        memcpy(value + LEDGER_HEADER_BYTES + record.key_size, record.lac, record.lac_size)
    store_u32(value, value_crc(key, LEDGER_KEY_BYTES, value, ledger_packed_size(record)))


cdef Status ledger_unpack(const void* key, size_t key_size, const void* value, size_t size,
                          LedgerRecord* record) noexcept nogil:
    cdef const uint8_t* bytes_ = <const uint8_t*> value
    if key_size != LEDGER_KEY_BYTES or size < LEDGER_HEADER_BYTES or bytes_[4] != LEDGER_VERSION:
        return CORRUPT
    if load_u32(bytes_) != value_crc(key, key_size, bytes_, size):
        return CORRUPT
    record.ledger = load_i64(key)
    record.fenced = bytes_[5] & LEDGER_FENCED != 0
    record.limbo = bytes_[5] & LEDGER_LIMBO != 0
    record.quarantine = bytes_[5] >> LEDGER_REASON_SHIFT if bytes_[5] & LEDGER_QUARANTINED else 0
    record.key_size = load_u16(bytes_ + 6)
    record.lac_size = load_u32(bytes_ + 8)
    if size - LEDGER_HEADER_BYTES != <size_t> record.key_size + record.lac_size:
        return CORRUPT
    record.key = bytes_ + LEDGER_HEADER_BYTES
    record.lac = bytes_ + LEDGER_HEADER_BYTES + record.key_size
    return OK


cdef Status ledger_forgive(const void* key, size_t key_size, LedgerRecord* record) noexcept nogil:
    if key_size != LEDGER_KEY_BYTES:
        return CORRUPT
    memset(record, 0, sizeof(LedgerRecord))
    record.ledger = load_i64(key)
    record.fenced = True
    record.quarantine = BAD_LEDGER_RECORD
    return OK


cdef void fence_pack(int64_t ledger, int64_t deleted_ms, uint8_t* key, uint8_t* value) noexcept nogil:
    store_i64(key, ledger)
    store_u32(value + 4, 0)
    value[4] = FENCE_VERSION
    store_i64(value + 8, deleted_ms)
    store_u32(value, value_crc(key, LEDGER_KEY_BYTES, value, FENCE_VALUE_BYTES))


cdef Status fence_unpack(const void* key, size_t key_size, const void* value, size_t size, int64_t* ledger,
                         int64_t* deleted_ms) noexcept nogil:
    cdef const uint8_t* bytes_ = <const uint8_t*> value
    if key_size != LEDGER_KEY_BYTES or size != FENCE_VALUE_BYTES or bytes_[4] != FENCE_VERSION:
        return CORRUPT
    if load_u32(bytes_) != value_crc(key, key_size, bytes_, size):
        return CORRUPT
    ledger[0] = load_i64(key)
    deleted_ms[0] = load_i64(bytes_ + 8)
    return OK


def pack_run(int64_t ledger, int64_t first, uint32_t log_id, uint64_t offset, lengths, next_run=None):
    """Return (key, value, slots packed) of a run of at most RUN_SLOTS_MAX slots, of which the first is present.

    `next_run` is the (ledger, first entry) of the next run, or None for the last one.
    """
    cdef uint32_t[RUN_SLOTS_MAX] slots
    cdef uint8_t[RUN_KEY_BYTES] key
    cdef uint8_t[RUN_VALUE_MAX] value
    cdef size_t size
    cdef uint32_t packed, i
    cdef IndexRun run
    cdef RunKey following = key_end()
    if not 0 < len(lengths) <= RUN_SLOTS_MAX or lengths[0] == 0:
        raise ValueError(f"lengths has {len(lengths)} slots; pass 1 to {RUN_SLOTS_MAX}, the first one not 0")
    memset(slots, 0, sizeof(slots))
    for i in range(len(lengths)):
        slots[i] = lengths[i]
    run.ledger, run.first, run.count, run.log_id, run.offset = ledger, first, len(lengths), log_id, offset
    run.lengths = slots
    if next_run is not None:
        following.ledger, following.first = next_run
    packed = run_pack(&run, following, key, value, &size)
    return key[:RUN_KEY_BYTES], value[:size], packed


def pack_head(next_run=None):
    """Return (key, value) of the head of the chain; `next_run` is as for pack_run."""
    cdef uint8_t[HEAD_KEY_BYTES] key
    cdef uint8_t[RUN_HEADER_BYTES] value
    cdef RunKey following = key_end()
    if next_run is not None:
        following.ledger, following.first = next_run
    head_pack(following, key, value)
    return key[:HEAD_KEY_BYTES], value[:RUN_HEADER_BYTES]


cdef object next_of(const StoredRun* run):
    return None if key_equal(run.next, key_end()) else (run.next.ledger, run.next.first)


def unpack_run(bytes key, bytes value):
    """Return (ledger, first, log id, offset, lengths) of a run of either version; ValueError if it is invalid."""
    cdef StoredRun run
    cdef const char* at = key
    cdef const char* stored = value
    if ((run_unpack(at, len(key), stored, len(value), &run) != OK or run.count == 0)
            and run_unpack_unchained(at, len(key), stored, len(value), &run) != OK):
        raise ValueError("these bytes are not a packed run: the header or the checksum is wrong")
    return run.ledger, run.first, run.log_id, run.offset, [run_length(&run, i) for i in range(run.count)]


def unpack_next(bytes key, bytes value):
    """Return the (ledger, first entry) of the run that follows this run or head, or None for the last one.

    ValueError if the bytes are neither; a run of version 1 names no next run.
    """
    cdef StoredRun run
    if run_unpack(<const char*> key, len(key), <const char*> value, len(value), &run) != OK:
        raise ValueError("these bytes are not a packed run: the header or the checksum is wrong")
    return next_of(&run)


def unpack_ledger(bytes key, bytes value):
    """Return (ledger, fenced, limbo, master key, lac, quarantine reason or 0); ValueError if it is invalid."""
    cdef LedgerRecord record
    if ledger_unpack(<const char*> key, len(key), <const char*> value, len(value), &record) != OK:
        raise ValueError("these bytes are not a ledger record: the header or the checksum is wrong")
    return (record.ledger, bool(record.fenced), bool(record.limbo), (<const char*> record.key)[:record.key_size],
            (<const char*> record.lac)[:record.lac_size], record.quarantine)


def unpack_fence(bytes key, bytes value):
    """Return (ledger, time of its deletion in ms since the epoch); ValueError if the bytes are not a fence."""
    cdef int64_t ledger, deleted_ms
    if fence_unpack(<const char*> key, len(key), <const char*> value, len(value), &ledger, &deleted_ms) != OK:
        raise ValueError("these bytes are not a fence: the header or the checksum is wrong")
    return ledger, deleted_ms
