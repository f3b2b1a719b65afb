"""Packs, unpacks and sums. A checksum of the value itself tells a flipped bit from a page of another commit."""
from bookie._fast.base.crc cimport crc32c
from bookie._fast.base.cursor cimport load_u32, load_u64, store_u32, store_u64
from bookie._fast.base.types cimport CORRUPT, OK

cdef enum:
    NUMBER_BYTES = 8             # of the value in an index of an earlier version: the number alone
    CRC_AT = 32

cdef const char* COMMIT_KEY = b"commit"


cdef void commit_pack(const CommitValue* commit, uint8_t* value) noexcept nogil:
    cdef int i
    store_u64(value, commit.number)
    for i in range(COMMIT_SUMS):
        store_u64(value + 8 + 8 * i, commit.sums[i])
    store_u32(value + CRC_AT, crc32c(crc32c(0, COMMIT_KEY, COMMIT_KEY_BYTES), value, CRC_AT))


cdef Status commit_unpack(const void* value, size_t size, CommitValue* commit) noexcept nogil:
    cdef const uint8_t* bytes_ = <const uint8_t*> value
    cdef int i
    commit.summed = size == COMMIT_VALUE_BYTES
    if not commit.summed and size != NUMBER_BYTES:
        return CORRUPT
    commit.number = load_u64(bytes_)
    for i in range(COMMIT_SUMS):
        commit.sums[i] = load_u64(bytes_ + 8 + 8 * i) if commit.summed else 0
    if commit.summed and load_u32(bytes_ + CRC_AT) != crc32c(crc32c(0, COMMIT_KEY, COMMIT_KEY_BYTES), bytes_, CRC_AT):
        return CORRUPT
    return OK


cdef uint64_t commit_share(const void* value, size_t size) noexcept nogil:
    return load_u32(<const uint8_t*> value) if size >= 4 else 0
