"""How long something took: count, sum, and a histogram in powers of two. Any thread notes, any thread reads.

Three relaxed additions a note, so for what takes longer than a microsecond.
"""
from libc.stdint cimport int64_t

cdef enum:
    LATENCY_BUCKETS = 24

cdef struct Latency:
    # counted with relaxed atomics
    int64_t count
    int64_t sum_ns
    int64_t buckets[LATENCY_BUCKETS]     # bucket i took less than 2^i us, and not less than the one before

cdef void latency_note(Latency* latency, int64_t ns) noexcept nogil
# As a LatencyView.
cdef object latency_view(const Latency* latency)
