"""Where a run stands in the table of runs. Inline, no state.

Keys compare as their stored bytes do, so that both numbers count as unsigned.
"""
from libc.stdint cimport int64_t, uint64_t

cdef struct RunKey:
    int64_t ledger
    int64_t first                # the first entry

# Behind every run: no entry has this id.
cdef inline RunKey key_end() noexcept nogil:
    return RunKey(-1, -1)

# Whether `a` stands before `b`.
cdef inline bint key_before(RunKey a, RunKey b) noexcept nogil:
    if a.ledger != b.ledger:
        return <uint64_t> a.ledger < <uint64_t> b.ledger
    return <uint64_t> a.first < <uint64_t> b.first

cdef inline bint key_equal(RunKey a, RunKey b) noexcept nogil:
    return a.ledger == b.ledger and a.first == b.first
