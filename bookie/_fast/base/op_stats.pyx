"""Recording observations on the data path, and copying them for Python."""
from collections import namedtuple

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from bookie._fast.base.sync cimport bk_add_relaxed, bk_count, bk_load

OpView = namedtuple("OpView", "times total buckets")

cdef extern from *:
    int leading_zeros "__builtin_clzll"(unsigned long long) noexcept nogil

cdef enum:
    EXACT = 8                # each value below this has a bucket of its own
    BITS = 3


cdef inline int bucket_of(int64_t value) noexcept nogil:
    cdef int octave
    if value < EXACT:
        return <int> value
    octave = 63 - leading_zeros(<uint64_t> value)
    return (octave - BITS + 1) * EXACT + <int> ((value >> (octave - BITS)) & (EXACT - 1))


cdef void op_note(OpStats* stats, int64_t value, int64_t times) noexcept nogil:
    if value < 0:
        value = 0
    bk_count(&stats.buckets[bucket_of(value)], times)
    bk_count(&stats.sum, value * times)
    bk_count(&stats.count, times)


cdef void op_note_shared(OpStats* stats, int64_t value) noexcept nogil:
    if value < 0:
        value = 0
    bk_add_relaxed(&stats.buckets[bucket_of(value)], 1)
    bk_add_relaxed(&stats.sum, value)
    bk_add_relaxed(&stats.count, 1)


cdef object op_view(const OpStats* stats):
    cdef int64_t buckets[OP_BUCKETS]
    cdef int i
    for i in range(OP_BUCKETS):          # other threads may record meanwhile
        buckets[i] = bk_load(&stats.buckets[i])
    return OpView(bk_load(&stats.count), bk_load(&stats.sum),
                  PyBytes_FromStringAndSize(<const char*> buckets, sizeof(buckets)))


def edges() -> list[int]:
    """Return the lower edge of each bucket, and after the last one its upper edge."""
    cdef uint64_t least
    found = []
    for at in range(OP_BUCKETS):
        least = at if at < EXACT else <uint64_t> (EXACT + at % EXACT) << (at // EXACT - 1)
        found.append(least)
    return [*found, 1 << 63]


def tally(values, times=1, shared=False) -> OpView:
    """Record each value `times` times, and return the resulting OpView. For tests."""
    cdef OpStats stats
    memset(&stats, 0, sizeof(stats))
    for value in values:
        if shared:
            op_note_shared(&stats, value)
        else:
            op_note(&stats, value, times)
    return op_view(&stats)
