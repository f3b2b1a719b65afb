"""Reads that wait for a higher LAC: kept by ledger, by deadline and by connection. It has no thread and no timer.

One I/O loop owns a Polls, and only its thread touches it; other threads use its `notices` (module `store.notices`). A
waiting poll costs its struct, a place in the heap and, once per ledger, a Watched. When its wait ends (`polls_pass`),
it moves to the list of ended polls, from which `polls_next` removes it. The polls of a closed connection are
cancelled, waiting or ended.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.by_ledger cimport ByLedger, Chained
from bookie._fast.base.types cimport Status
from bookie._fast.base.waker cimport Waker
from bookie._fast.store.gather cimport ReadRequest
from bookie._fast.store.notices cimport Notices
from bookie._fast.store.stores cimport Storage

cdef enum:
    POLL_BYTES = 512         # what the memory budget reserves for a poll: more than it takes

cdef struct PollOwner:
    # Part of a connection; zeroed at first.
    Poll* first
    int64_t count

cdef struct Watched:
    # A ledger with polls. The list of ended polls is one too, outside the hash table.
    Chained chained
    Poll* first

cdef struct Poll:
    ReadRequest request
    int64_t previous_lac
    int64_t events           # Ledger.events when the wait began
    int64_t deadline_ns
    int64_t lac_time_ms      # when the LAC rose, if that ended the wait; else 0
    bint expired             # the deadline ended the wait
    uint32_t heap_at
    Watched* watched
    Poll* prev
    Poll* next
    PollOwner* owner
    Poll* owner_prev
    Poll* owner_next

cdef struct PollLimits:
    # Shared by all loops; constant except for `waiting`.
    int64_t waiting          # atomic; polls of all loops
    int64_t waiting_max
    int64_t per_owner_max

cdef struct PollStats:
    int64_t long_polls           # that had to wait
    int64_t long_polls_notified  # ended by a change of their ledger
    int64_t long_polls_expired
    int64_t long_polls_cancelled
    int64_t long_polls_refused   # over a limit

cdef struct Polls:
    Storage* stores
    PollLimits* limits
    uint64_t bit             # this loop's bit in Ledger.watchers
    Notices notices
    ByLedger watched         # without buckets before the first poll and after the last
    Poll** heap              # nearest deadline first
    uint32_t count           # of waiting polls
    uint32_t heap_room
    Watched ended
    PollStats stats

# Initialise as number `index` of the stores' loops; `waker` wakes the owning loop.
cdef void polls_init(Polls* polls, Storage* stores, PollLimits* limits, uint32_t index, Waker* waker) noexcept nogil
# Free all memory. Every poll has been cancelled or taken.
cdef void polls_free(Polls* polls) noexcept nogil
# Begin to wait until the ledger's LAC is above `previous_lac`. PENDING: it waits. OK: answer now. NEED_MORE: the LAC
# is not known; have the read pool learn it, then call again. TOO_MANY_REQUESTS: over a limit.
cdef Status polls_wait(Polls* polls, PollOwner* owner, const ReadRequest* request, int64_t previous_lac,
                       int64_t timeout_ms, int64_t now) noexcept nogil
# End the waits of changed ledgers, and those whose deadline is at most `now`; INT64_MAX ends all.
cdef void polls_pass(Polls* polls, int64_t now) noexcept nogil
# Move the next ended poll, which has no owner any more, to `poll`. Return False if there is none.
cdef bint polls_next(Polls* polls, Poll* poll) noexcept nogil
# Cancel all polls of a connection; return their number.
cdef int64_t polls_cancel(Polls* polls, PollOwner* owner) noexcept nogil
# Return the time until the nearest deadline, for epoll_wait; -1 if no poll waits.
cdef int polls_timeout_ms(const Polls* polls, int64_t now) noexcept nogil
