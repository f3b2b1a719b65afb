"""The counters of an I/O loop, and the durations and sizes of its batch reads, in the histograms of BP-62.

The loop's own thread writes, any thread reads.
"""
from libc.stdint cimport int64_t

cdef enum:
    TIME_EDGES = 9
    SIZE_EDGES = 8

cdef struct BatchStats:
    # By success. Bucket i counts values above edge i - 1 and not above edge i; the last one, values above all edges.
    int64_t times[2][TIME_EDGES + 1]
    int64_t sizes[2][SIZE_EDGES + 1]
    int64_t sum_ns[2]
    int64_t sum_bytes[2]

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
    int64_t refused_rights   # requests for which their user has no right
    int64_t policy_answers
    int64_t read_entries     # entries of responses, single and batched
    int64_t read_bytes       # their bytes
    int64_t polled_absent    # entries of long polls that are not stored here
    int64_t bytes_in
    int64_t bytes_out
    int64_t accepted
    int64_t refused          # connections over the total limit
    int64_t refused_address  # connections over the limit of one address
    int64_t refused_by_connection  # requests over the limit of one connection
    int64_t refused_adds     # adds over the limit of the loop
    int64_t refused_urgent   # fences and high-priority requests over their own, higher limit
    int64_t held_back        # how often a connection was not read because of requests in progress
    int64_t choked           # how often a connection was not read because of its unsent output
    int64_t closed_unauthenticated
    int64_t closed_idle
    int64_t closed_by_limit  # budget of input or output exceeded
    int64_t broken_frames
    int64_t unreadable_v3    # frames that began like V3 but are not
    int64_t stalls           # an add had to wait for room
    int64_t stalls_refused   # and found none in time
    int64_t inline_commits
    int64_t upgrades         # connections that changed to TLS
    int64_t errors[CODES]    # by Status

# Count a batch read answered after `ns`.
cdef void batch_took(BatchStats* stats, bint success, int64_t ns) noexcept nogil
# Count the response to a batch read: a frame of `size` bytes, with its length word.
cdef void batch_sized(BatchStats* stats, bint success, int64_t size) noexcept nogil
# Return a BatchView of failures, and one of successes.
cdef object batch_view(const BatchStats* stats)
