"""Reads that wait for a higher LAC: kept by ledger, by deadline and by connection. No thread, no timer of its own.

One I/O loop owns a Polls and alone touches it; others reach it by its `notices` (module `store.notices`). A waiting
poll costs its struct, a place in the heap and, once a ledger, a Watched. When a wait is over (`polls_pass`) the poll
moves to the list of ended ones, and `polls_next` hands it out and frees it; a connection that closes takes its polls
along, waiting or ended.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.by_ledger cimport ByLedger, Chained
from bookie._fast.base.types cimport Status
from bookie._fast.base.waker cimport Waker
from bookie._fast.store.gather cimport ReadRequest
from bookie._fast.store.notices cimport Notices
from bookie._fast.store.stores cimport Storage

cdef enum:
    POLL_BYTES = 512         # what a poll is counted with in the budget: more than it takes

cdef struct PollOwner:
    # In the connection; zeroed at its start.
    Poll* first
    int64_t count

cdef struct Watched:
    # A ledger with polls. The list of ended polls is one, too, outside the hash.
    Chained chained
    Poll* first

cdef struct Poll:
    ReadRequest request
    int64_t previous_lac
    int64_t events           # of the ledger when the wait began
    int64_t deadline_ns
    int64_t lac_time_ms      # ended by a rise of the LAC at this time; 0: by something else
    bint expired             # ended because its time was over
    uint32_t heap_at
    Watched* watched
    Poll* prev
    Poll* next
    PollOwner* owner
    Poll* owner_prev
    Poll* owner_next

cdef struct PollLimits:
    # shared by all loops; constant after start but for `waiting`
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
    uint64_t bit             # of this loop in Ledger.watchers
    Notices notices
    ByLedger watched         # without buckets before the first poll and after the last
    Poll** heap              # nearest deadline first
    uint32_t count           # waiting
    uint32_t heap_room
    Watched ended
    PollStats stats

# Take place `index` of the stores' loops; `waker` wakes the owning loop.
cdef void polls_init(Polls* polls, Storage* stores, PollLimits* limits, uint32_t index, Waker* waker) noexcept nogil
# Free all memory; every poll must have been cancelled or taken.
cdef void polls_free(Polls* polls) noexcept nogil
# Begin to wait until the ledger's LAC is above `previous_lac`. PENDING: it waits now. OK: answer at once.
# NEED_MORE: the LAC is not known yet; learn it (read pool), then come again. TOO_MANY_REQUESTS: over a limit.
cdef Status polls_wait(Polls* polls, PollOwner* owner, const ReadRequest* request, int64_t previous_lac,
                       int64_t timeout_ms, int64_t now) noexcept nogil
# End the waits of changed ledgers and those that are over by `now`; INT64_MAX ends all.
cdef void polls_pass(Polls* polls, int64_t now) noexcept nogil
# The next ended poll by value, no longer its owner's; False: none.
cdef bint polls_next(Polls* polls, Poll* poll) noexcept nogil
# Forget all polls of a connection; how many there were.
cdef int64_t polls_cancel(Polls* polls, PollOwner* owner) noexcept nogil
# Until the nearest deadline, for epoll; -1: nothing waits.
cdef int polls_timeout_ms(const Polls* polls, int64_t now) noexcept nogil
