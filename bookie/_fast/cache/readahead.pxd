"""How much a miss reads at once: what is configured, or, where that is asked for, as much of it as readers use.

Of what leaves the read cache, the share that nobody took says whether readahead brings more than the cache can hold
until it is wanted. Above a quarter, what follows a page is no longer read before it is asked for, which halves the room
that a reader needs; below a sixteenth it is again. Adaptive: above a quarter the next reads also bring half as much,
below a sixteenth a quarter more, up to what is configured. Pages carry the number of the setting that they were read
under, and only those of the present one are judged: a change shows only after the ring has come round once.

One a store. Limits: any thread. Evictions: one at a time (the read ring's lock).
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef enum:
    SCALE_FULL = 1024        # of so many parts of what is configured
    SCALE_LEAST = 16
    ENTRIES_LEAST = 16       # unless fewer are configured

cdef struct Readahead:
    uint64_t bytes_max       # as configured
    uint32_t entries_max
    bint adaptive
    uint64_t judge_bytes     # so much must have left before it is judged
    int64_t scale            # atomic
    int64_t setting          # atomic; the number of the present scale
    int64_t wasteful         # atomic; 1: much leaves unused, so nothing is read before it is asked for
    int64_t shrunk           # atomic; times
    int64_t grown
    # of pages read under this setting, since it was last judged
    uint64_t evicted
    uint64_t unused

cdef void readahead_init(Readahead* ahead, uint64_t bytes, uint32_t entries, bint adaptive,
                         uint64_t judge_bytes) noexcept nogil
# What the next miss may read, and the number to note on its page.
cdef void readahead_limits(const Readahead* ahead, uint64_t* bytes, uint32_t* entries, uint32_t* setting) noexcept nogil
# A page left, read under `setting`: its bytes, and those of them that nobody took.
cdef void readahead_evicted(Readahead* ahead, uint32_t setting, uint64_t bytes, uint64_t unused) noexcept nogil
