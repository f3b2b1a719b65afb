"""Readahead that shrinks while much of it is evicted unused, and grows again."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.sync cimport bk_add_relaxed, bk_load, bk_store

cdef enum:
    SHRINK_SHARE = 4         # shrink if more than one byte in this many was unused
    GROW_SHARE = 16          # grow if fewer than one in this many were

POLICIES = {"forward": READ_AHEAD_FORWARD, "always": READ_AHEAD_ALWAYS, "off": READ_AHEAD_OFF}


cdef void readahead_init(Readahead* ahead, uint64_t bytes, uint32_t entries, ReadaheadPolicy policy, bint adaptive,
                         uint64_t judge_bytes) noexcept nogil:
    ahead.bytes_max = bytes
    ahead.entries_max = entries
    ahead.policy = policy
    ahead.adaptive = adaptive
    ahead.judge_bytes = judge_bytes
    ahead.scale = SCALE_FULL
    ahead.setting = 0
    ahead.wasteful = 0
    ahead.shrunk = 0
    ahead.grown = 0
    ahead.evicted = 0
    ahead.unused = 0


cdef void readahead_limits(const Readahead* ahead, uint64_t* bytes, uint32_t* entries,
                           uint32_t* setting) noexcept nogil:
    cdef uint64_t scale = <uint64_t> bk_load(&ahead.scale)
    setting[0] = <uint32_t> bk_load(&ahead.setting)
    bytes[0] = ahead.bytes_max
    entries[0] = ahead.entries_max
    if scale != SCALE_FULL:
        bytes[0] = max(ahead.bytes_max * scale // SCALE_FULL, <uint64_t> 1)
        entries[0] = max(<uint32_t> (ahead.entries_max * scale // SCALE_FULL),
                         min(ahead.entries_max, <uint32_t> ENTRIES_LEAST))


cdef void rescale(Readahead* ahead, int64_t scale) noexcept nogil:
    bk_store(&ahead.scale, scale)
    bk_store(&ahead.setting, ahead.setting + 1)


cdef void readahead_evicted(Readahead* ahead, uint32_t setting, uint64_t bytes, uint64_t unused) noexcept nogil:
    cdef int64_t scale = ahead.scale
    if setting != <uint32_t> ahead.setting:
        return
    ahead.evicted += bytes
    ahead.unused += unused
    if ahead.evicted < ahead.judge_bytes:
        return
    if ahead.unused > ahead.evicted // SHRINK_SHARE:
        bk_store(&ahead.wasteful, 1)
        if ahead.adaptive and scale > SCALE_LEAST:
            rescale(ahead, max(scale // 2, <int64_t> SCALE_LEAST))
            bk_add_relaxed(&ahead.shrunk, 1)
    elif ahead.unused < ahead.evicted // GROW_SHARE:
        bk_store(&ahead.wasteful, 0)
        if ahead.adaptive and scale < SCALE_FULL:
            rescale(ahead, min(scale + scale // 4, <int64_t> SCALE_FULL))
            bk_add_relaxed(&ahead.grown, 1)
    ahead.evicted = 0
    ahead.unused = 0


cdef class ReadaheadLimits:
    """The limits on their own, for tests."""
    cdef Readahead ahead

    def __cinit__(self, uint64_t bytes_max, uint32_t entries_max, *, adaptive: bool, uint64_t judge_bytes):
        readahead_init(&self.ahead, bytes_max, entries_max, READ_AHEAD_FORWARD, adaptive, judge_bytes)

    def limits(self) -> tuple[int, int, int]:
        """Return bytes, entries, and the number of the setting."""
        cdef uint64_t size
        cdef uint32_t entries, setting
        readahead_limits(&self.ahead, &size, &entries, &setting)
        return size, entries, setting

    def wasteful(self) -> bool:
        """Return whether nothing is read before it is requested."""
        return bk_load(&self.ahead.wasteful) != 0

    def evicted(self, uint32_t setting, uint64_t size, uint64_t unused) -> None:
        """Record the eviction of a page of `size` bytes that was read with `setting`."""
        readahead_evicted(&self.ahead, setting, size, unused)
