"""Notices of changed ledgers to the I/O loops whose long polls wait for them.

A ledger's `watchers` has one bit for each loop. A thread that changes the ledger takes and clears the mask under the
shard's lock (`take_watchers`), and afterwards posts the ledger's id. Any thread. A loop takes its own list (module
`server.long_polls`). The lists are bounded, without allocation: if one overflows, its loop looks at all its ledgers.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.bounds cimport IO_LOOPS_MAX
from bookie._fast.base.sync cimport (
    bk_load,
    bk_store,
    pthread_mutex_lock,
    pthread_mutex_t,
    pthread_mutex_unlock,
    wall_ms,
)
from bookie._fast.base.waker cimport Waker, waker_wake
from bookie._fast.store.ledger_table cimport Ledger

cdef enum:
    NOTICES_MOST = 1024
    BOARD_MOST = IO_LOOPS_MAX

cdef struct Notices:
    pthread_mutex_t lock
    int64_t ids[NOTICES_MOST]    # a ledger may occur twice
    int64_t count                # atomic; written with the lock
    bint all                     # more ledgers changed than fit into `ids`
    Waker* waker

cdef struct NoticeBoard:
    Notices* loops[BOARD_MOST]   # by bit of `Ledger.watchers`; set before the first connection


cdef inline uint64_t take_watchers(Ledger* ledger, bint lac_rose) noexcept nogil:
    """Take the loops to be told of a change; 0 if none wait. Call it after the change, with the shard's lock."""
    cdef uint64_t watchers = ledger.watchers
    if watchers == 0:
        return 0
    ledger.watchers = 0
    ledger.lac_time_ms = wall_ms() if lac_rose else 0
    return watchers


cdef inline void post_notice(Notices* notices, int64_t ledger) noexcept nogil:
    pthread_mutex_lock(&notices.lock)
    if notices.count < NOTICES_MOST:
        notices.ids[notices.count] = ledger
        bk_store(&notices.count, notices.count + 1)
    else:
        notices.all = True
    pthread_mutex_unlock(&notices.lock)
    waker_wake(notices.waker)


cdef inline void post_notices(NoticeBoard* board, uint64_t watchers, int64_t ledger) noexcept nogil:
    """Post the ledger to the loops of the mask. Call it after releasing the shard's lock."""
    cdef uint32_t at = 0
    while watchers:
        if watchers & 1:
            post_notice(board.loops[at], ledger)
        watchers >>= 1
        at += 1


cdef inline int64_t notices_take(Notices* notices, int64_t* ids, bint* all) noexcept nogil:
    """Move the posted ids to `ids`, which has room for NOTICES_MOST, and return their number."""
    cdef int64_t count, i
    all[0] = False
    if bk_load(&notices.count) == 0:
        return 0
    pthread_mutex_lock(&notices.lock)
    count = notices.count
    for i in range(count):
        ids[i] = notices.ids[i]
    all[0] = notices.all
    notices.all = False
    bk_store(&notices.count, 0)
    pthread_mutex_unlock(&notices.lock)
    return count
