"""How much a miss reads: the configured amount, or, if readahead is adaptive, as much of it as readers use.

The share of unused bytes among those evicted from the read cache shows whether readahead brings more than the cache
can hold until it is needed. Above a quarter, the data after a page is not read before it is requested, which halves
the space that a reader needs; below a sixteenth it is again. If adaptive, the next reads also bring half as much above
a quarter, and a quarter more below a sixteenth, up to the configured amount. A page carries the number of the setting
with which it was read, and only pages of the current setting count: a change shows only after the ring has gone round.

One for each store. Limits: any thread. Evictions: one at a time (with the read ring's lock).
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef enum:
    SCALE_FULL = 1024        # scale of the configured amount
    SCALE_LEAST = 16
    ENTRIES_LEAST = 16       # unless fewer are configured

cdef enum ReadaheadPolicy:
    READ_AHEAD_FORWARD       # for readers that go forward
    READ_AHEAD_ALWAYS        # at each miss, as Apache BookKeeper does
    READ_AHEAD_OFF

cdef struct Readahead:
    uint64_t bytes_max       # as configured
    uint32_t entries_max
    ReadaheadPolicy policy
    bint adaptive
    uint64_t judge_bytes     # evicted bytes after which the share is judged
    int64_t scale            # atomic
    int64_t setting          # atomic; number of the current scale
    int64_t wasteful         # atomic; 1: much is evicted unused, so nothing is read before it is requested
    int64_t shrunk           # atomic; number of times
    int64_t grown
    # Bytes of pages read with this setting, since it was last judged.
    uint64_t evicted
    uint64_t unused

cdef void readahead_init(Readahead* ahead, uint64_t bytes, uint32_t entries, ReadaheadPolicy policy, bint adaptive,
                         uint64_t judge_bytes) noexcept nogil
# Get what the next miss may read, and the number to store in its page.
cdef void readahead_limits(const Readahead* ahead, uint64_t* bytes, uint32_t* entries, uint32_t* setting) noexcept nogil
# Record the eviction of a page read with `setting`: its bytes, and how many of them no reader took.
cdef void readahead_evicted(Readahead* ahead, uint32_t setting, uint64_t bytes, uint64_t unused) noexcept nogil
