"""Latencies noted by the data path, handed to Python as they are."""
from collections import namedtuple

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from bookie._fast.sync cimport bk_add_relaxed, bk_load

LatencyView = namedtuple("LatencyView", "times sum_ns buckets")

cdef extern from *:
    int leading_zeros "__builtin_clzll"(unsigned long long) noexcept nogil


cdef void latency_note(Latency* latency, int64_t ns) noexcept nogil:
    cdef uint64_t us = <uint64_t> ns // 1000 if ns > 0 else 0
    cdef int bucket = 64 - leading_zeros(us) if us else 0
    if bucket >= LATENCY_BUCKETS:
        bucket = LATENCY_BUCKETS - 1
    bk_add_relaxed(&latency.count, 1)
    bk_add_relaxed(&latency.sum_ns, ns)
    bk_add_relaxed(&latency.buckets[bucket], 1)


cdef object latency_view(const Latency* latency):
    return LatencyView(bk_load(&latency.count), bk_load(&latency.sum_ns),
                       tuple([bk_load(&latency.buckets[i]) for i in range(LATENCY_BUCKETS)]))


def tally(latencies_ns) -> LatencyView:
    """Note these and say what was counted."""
    cdef Latency latency
    memset(&latency, 0, sizeof(latency))
    for ns in latencies_ns:
        latency_note(&latency, ns)
    return latency_view(&latency)
