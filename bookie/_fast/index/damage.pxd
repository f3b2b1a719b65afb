"""Damage that look-ups and writes have met in a location index: counted, reported to Python, and waited for by repair.

Any thread notes damage, without the GIL.
"""
from libc.stdint cimport int64_t

from bookie._fast.base.sync cimport pthread_cond_t, pthread_mutex_t

cdef struct IndexDamage:
    pthread_mutex_t lock
    pthread_cond_t noted
    int64_t total                # atomic; since the start
    int64_t repairs              # atomic; how often a repair replaced the index; changes while flushes are excluded
    int64_t pending              # atomic; 1 if damage was noted since the last repair began
    int64_t fresh                # number noted since Python last called damage_take
    int64_t ledger               # the ledger of the first of these; -1 if unknown
    bint stopping

cdef void damage_init(IndexDamage* damage) noexcept nogil
# Note damage. `ledger` is -1 if it does not belong to one ledger, or to an unknown one.
cdef void damage_note(IndexDamage* damage, int64_t ledger) noexcept nogil
# Call when a repair begins: damage noted from now on asks for another repair.
cdef void damage_begin_repair(IndexDamage* damage) noexcept nogil
# Wait until damage is pending, the deadline has passed or `damage_stop` was called; return whether damage is pending.
cdef bint damage_wait(IndexDamage* damage, int64_t deadline_ns) noexcept nogil
cdef void damage_stop(IndexDamage* damage) noexcept nogil
# Return (number, ledger of the first) noted since the last call, or None.
cdef object damage_take(IndexDamage* damage)
