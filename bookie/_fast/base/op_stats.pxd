"""How long something took, or how large it was: number, sum, and a histogram of eight buckets an octave.

Any unit; a bucket is at most an eighth wide, so a quantile is right to 6 %. One thread notes with `op_note`, or several
with `op_note_shared`; any thread reads, also while they note.
"""
from libc.stdint cimport int64_t

cdef enum:
    OP_BUCKETS = 488         # all of int64

cdef struct OpStats:
    int64_t count
    int64_t sum
    int64_t buckets[OP_BUCKETS]

# `times` observations of `value`; below 0 counts as 0.
cdef void op_note(OpStats* stats, int64_t value, int64_t times) noexcept nogil
# One observation, by one of several threads: three relaxed additions.
cdef void op_note_shared(OpStats* stats, int64_t value) noexcept nogil
# As an OpView.
cdef object op_view(const OpStats* stats)
