"""How long batch reads took and how much they answered, in the histograms of BP-62. One thread notes, any reads."""
from libc.stdint cimport int64_t

cdef enum:
    TIME_EDGES = 9
    SIZE_EDGES = 8

cdef struct BatchStats:
    # Bucket i counts what is above edge i - 1 and not above edge i, the last one what is above all edges.
    int64_t times[TIME_EDGES + 1]
    int64_t sizes[SIZE_EDGES + 1]
    int64_t sum_ns
    int64_t sum_bytes

# A batch read was answered `ns` after it came in, with `size` bytes of records; -1: with an error, which has no size.
cdef void batch_note(BatchStats* stats, int64_t ns, int64_t size) noexcept nogil
# As a BatchView.
cdef object batch_view(const BatchStats* stats)
