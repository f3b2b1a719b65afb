"""Batch reads counted by duration and size; an edge belongs to the bucket below it."""
from collections import namedtuple

from libc.stdint cimport int64_t
from libc.string cimport memset

from bookie._fast.base.sync cimport bk_count, bk_load
from bookie._fast.base.types cimport (
    BAD_REQUEST,
    BAD_VERSION,
    FENCED,
    IO_ERROR,
    NO_ENTRY,
    NO_LEDGER,
    READ_ONLY,
    TOO_MANY_REQUESTS,
    UNAUTHORIZED,
    UNKNOWN_STATE,
)

Histogram = namedtuple("Histogram", "edges counts sum")
BatchView = namedtuple("BatchView", "request_ms response_bytes")

# Labels in metrics of responses other than the requested entry or acknowledgement.
STATUS_WORDS = {
    NO_LEDGER: "no_ledger", NO_ENTRY: "no_entry", BAD_REQUEST: "bad_request", IO_ERROR: "io_error",
    UNAUTHORIZED: "unauthorized", BAD_VERSION: "bad_version", FENCED: "fenced", READ_ONLY: "read_only",
    TOO_MANY_REQUESTS: "too_many_requests", UNKNOWN_STATE: "unknown_state",
}

cdef int64_t[TIME_EDGES] time_edges = [5, 10, 20, 50, 100, 200, 500, 1000, 3000]
cdef int64_t[SIZE_EDGES] size_edges = [128, 512, 1024, 2048, 4096, 16384, 131072, 1048576]
cdef enum:
    NS_IN_MS = 1000000


cdef inline int bucket(const int64_t* edges, int count, int64_t unit, int64_t value) noexcept nogil:
    cdef int i
    for i in range(count):
        if value <= edges[i] * unit:
            return i
    return count


cdef void batch_took(BatchStats* stats, bint success, int64_t ns) noexcept nogil:
    bk_count(&stats.times[success][bucket(time_edges, TIME_EDGES, NS_IN_MS, ns)], 1)
    bk_count(&stats.sum_ns[success], ns)


cdef void batch_sized(BatchStats* stats, bint success, int64_t size) noexcept nogil:
    bk_count(&stats.sizes[success][bucket(size_edges, SIZE_EDGES, 1, size)], 1)
    bk_count(&stats.sum_bytes[success], size)


cdef object batch_view(const BatchStats* stats):
    return tuple([outcome_view(stats, success) for success in range(2)])


cdef object outcome_view(const BatchStats* stats, bint success):
    return BatchView(
        Histogram(tuple([time_edges[i] for i in range(TIME_EDGES)]),
                  tuple([bk_load(&stats.times[success][i]) for i in range(TIME_EDGES + 1)]),
                  <double> bk_load(&stats.sum_ns[success]) / <double> NS_IN_MS),
        Histogram(tuple([size_edges[i] for i in range(SIZE_EDGES)]),
                  tuple([bk_load(&stats.sizes[success][i]) for i in range(SIZE_EDGES + 1)]),
                  bk_load(&stats.sum_bytes[success])))


def merged(views) -> BatchView:
    """Return the sum of all views. ValueError if there are none."""
    views = list(views)
    if not views:
        raise ValueError("there is nothing to merge; pass at least one view")
    return BatchView(*[
        Histogram(parts[0].edges, tuple([sum(counts) for counts in zip(*[part.counts for part in parts])]),
                  sum([part.sum for part in parts]))
        for parts in zip(*views)
    ])


def tally(answers) -> tuple:
    """Count these (success, nanoseconds, bytes) and return the views of failures and of successes."""
    cdef BatchStats stats
    memset(&stats, 0, sizeof(stats))
    for success, ns, size in answers:
        batch_took(&stats, success, ns)
        batch_sized(&stats, success, size)
    return batch_view(&stats)
