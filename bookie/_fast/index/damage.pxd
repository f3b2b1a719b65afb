"""Damage that look-ups and writes met in a location index: counted, told to the log, and waited for by who repairs.

Noted by any thread without the GIL.
"""
from libc.stdint cimport int64_t

from bookie._fast.base.sync cimport pthread_cond_t, pthread_mutex_t

cdef struct IndexDamage:
    pthread_mutex_t lock
    pthread_cond_t noted
    int64_t total                # atomic; since the start
    int64_t pending              # atomic; 1: noted since the last repair began
    int64_t fresh                # since Python last took them
    int64_t ledger               # the first of those; -1: no ledger's
    bint stopping

cdef void damage_init(IndexDamage* damage) noexcept nogil
# `ledger` -1: it is not of one ledger, or nobody knows of which.
cdef void damage_note(IndexDamage* damage, int64_t ledger) noexcept nogil
# A repair begins: what is noted from now on asks for another one.
cdef void damage_begin_repair(IndexDamage* damage) noexcept nogil
# Until something is noted, the time is over or `damage_stop` was called; whether something is.
cdef bint damage_wait(IndexDamage* damage, int64_t deadline_ns) noexcept nogil
cdef void damage_stop(IndexDamage* damage) noexcept nogil
# (how many, ledger of the first) since the last call, or None.
cdef object damage_take(IndexDamage* damage)
