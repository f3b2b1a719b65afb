"""Big-endian loads and stores on unaligned memory, without bounds checks: callers compare with `end - pos` first."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    uint16_t bswap16 "__builtin_bswap16"(uint16_t) noexcept nogil
    uint32_t bswap32 "__builtin_bswap32"(uint32_t) noexcept nogil
    uint64_t bswap64 "__builtin_bswap64"(uint64_t) noexcept nogil

cdef inline uint16_t load_u16(const void* p) noexcept nogil:
    cdef uint16_t v
    memcpy(&v, p, 2)
    return bswap16(v)

cdef inline uint32_t load_u32(const void* p) noexcept nogil:
    cdef uint32_t v
    memcpy(&v, p, 4)
    return bswap32(v)

cdef inline int32_t load_i32(const void* p) noexcept nogil:
    return <int32_t> load_u32(p)

cdef inline uint64_t load_u64(const void* p) noexcept nogil:
    cdef uint64_t v
    memcpy(&v, p, 8)
    return bswap64(v)

cdef inline int64_t load_i64(const void* p) noexcept nogil:
    return <int64_t> load_u64(p)

cdef inline void store_u16(void* p, uint16_t v) noexcept nogil:
    v = bswap16(v)
    memcpy(p, &v, 2)

cdef inline void store_u32(void* p, uint32_t v) noexcept nogil:
    v = bswap32(v)
    memcpy(p, &v, 4)

cdef inline void store_u64(void* p, uint64_t v) noexcept nogil:
    v = bswap64(v)
    memcpy(p, &v, 8)

cdef inline void store_i64(void* p, int64_t v) noexcept nogil:
    store_u64(p, <uint64_t> v)
