"""What an I/O loop counts, and how long its batch reads took and how much they answered, in the histograms of BP-62.

The loop's own thread writes, any thread reads.
"""
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

cdef enum:
    CODES = 20

cdef struct LoopStats:
    int64_t adds
    int64_t reads
    int64_t batch_reads
    int64_t fences
    int64_t deferred_adds    # acknowledged before their sync
    int64_t write_lacs
    int64_t read_lacs
    int64_t forces
    int64_t write_closes
    int64_t auths
    int64_t refused_unauthenticated
    int64_t refused_rights   # requests that their user may not ask
    int64_t policy_answers
    int64_t read_entries     # answered, single and batched
    int64_t read_bytes       # of them
    int64_t polled_absent    # entries that were polled for and are not here
    int64_t bytes_in
    int64_t bytes_out
    int64_t accepted
    int64_t refused          # connections: too many of them
    int64_t refused_address  # too many of one address
    int64_t refused_by_connection  # requests: too many of one connection have no answer yet
    int64_t refused_adds     # too many of the loop
    int64_t refused_urgent   # fences, and requests of high priority: too many even for them
    int64_t held_back        # times that a connection was not read for that
    int64_t choked           # times that it was not read because its answers lay unsent
    int64_t closed_unauthenticated
    int64_t closed_idle
    int64_t closed_by_limit  # budget of input or output exceeded
    int64_t broken_frames
    int64_t unreadable_v3    # frames that began as V3 and were none
    int64_t stalls           # an add had to wait for room
    int64_t stalls_refused   # and found none in time
    int64_t inline_commits
    int64_t upgrades         # connections that went on to TLS
    int64_t errors[CODES]    # by Status
    BatchStats batches

# A batch read was answered `ns` after it came in, with `size` bytes of records; -1: with an error, which has no size.
cdef void batch_note(BatchStats* stats, int64_t ns, int64_t size) noexcept nogil
# As a BatchView.
cdef object batch_view(const BatchStats* stats)
