"""A histogram of durations or sizes: count, sum, and eight buckets for each power of two.

Values may have any unit. A bucket is at most an eighth of its value wide, so a quantile is accurate to 6 %. One
thread records with `op_note`, or several with `op_note_shared`; any thread may read at the same time.
"""
from libc.stdint cimport int64_t

cdef enum:
    OP_BUCKETS = 488         # cover all of int64

cdef struct OpStats:
    int64_t count
    int64_t sum
    int64_t buckets[OP_BUCKETS]

# Record `times` observations of `value`; a negative value counts as 0.
cdef void op_note(OpStats* stats, int64_t value, int64_t times) noexcept nogil
# Record one observation from one of several threads, by three relaxed atomic additions.
cdef void op_note_shared(OpStats* stats, int64_t value) noexcept nogil
# Return an OpView of the current state.
cdef object op_view(const OpStats* stats)
