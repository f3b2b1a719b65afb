"""The key of a run in the table of runs. Inline, no state.

Keys compare like their stored bytes, that is, with both numbers as unsigned.
"""
from libc.stdint cimport int64_t, uint64_t

cdef struct RunKey:
    int64_t ledger
    int64_t first                # the run's first entry

# Return the key after every run: no entry has this id.
cdef inline RunKey key_end() noexcept nogil:
    return RunKey(-1, -1)

# Return whether `a` sorts before `b`.
cdef inline bint key_before(RunKey a, RunKey b) noexcept nogil:
    if a.ledger != b.ledger:
        return <uint64_t> a.ledger < <uint64_t> b.ledger
    return <uint64_t> a.first < <uint64_t> b.first

cdef inline bint key_equal(RunKey a, RunKey b) noexcept nogil:
    return a.ledger == b.ledger and a.first == b.first
