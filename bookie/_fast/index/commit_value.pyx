"""Packs, unpacks and sums. A checksum of the value itself tells a flipped bit from a page of another commit."""
from libc.stdint cimport uint32_t

from bookie._fast.base.crc cimport crc32c
from bookie._fast.base.cursor cimport load_i64, load_u32, load_u64, store_i64, store_u32, store_u64
from bookie._fast.base.types cimport CORRUPT, OK

cdef enum:
    NUMBER_BYTES = 8             # of the value in an index of an earlier version: the number alone
    SUMMED_BYTES = 36            # of one with sums, but without the time
    TIME_AT = 32
    CRC_BYTES = 4

cdef const char* COMMIT_KEY = b"commit"


cdef inline uint32_t crc_of(const uint8_t* value, size_t size) noexcept nogil:
    return crc32c(crc32c(0, COMMIT_KEY, COMMIT_KEY_BYTES), value, size)


cdef void commit_pack(const CommitValue* commit, uint8_t* value) noexcept nogil:
    cdef int i
    store_u64(value, commit.number)
    for i in range(COMMIT_SUMS):
        store_u64(value + 8 + 8 * i, commit.sums[i])
    store_i64(value + TIME_AT, commit.begun_ns)
    store_u32(value + COMMIT_VALUE_BYTES - CRC_BYTES, crc_of(value, COMMIT_VALUE_BYTES - CRC_BYTES))


cdef Status commit_unpack(const void* value, size_t size, CommitValue* commit) noexcept nogil:
    cdef const uint8_t* bytes_ = <const uint8_t*> value
    cdef int i
    commit.summed = size == COMMIT_VALUE_BYTES or size == SUMMED_BYTES
    if not commit.summed and size != NUMBER_BYTES:
        return CORRUPT
    commit.number = load_u64(bytes_)
    for i in range(COMMIT_SUMS):
        commit.sums[i] = load_u64(bytes_ + 8 + 8 * i) if commit.summed else 0
    commit.begun_ns = load_i64(bytes_ + TIME_AT) if size == COMMIT_VALUE_BYTES else 0
    if commit.summed and load_u32(bytes_ + size - CRC_BYTES) != crc_of(bytes_, size - CRC_BYTES):
        return CORRUPT
    return OK


cdef uint64_t commit_share(const void* value, size_t size) noexcept nogil:
    return load_u32(<const uint8_t*> value) if size >= 4 else 0
