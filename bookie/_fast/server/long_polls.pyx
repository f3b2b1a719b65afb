"""The polls of one I/O loop: a hash table of ledgers, a binary heap of deadlines, and a list for each connection."""
from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memset

from bookie._fast.base.by_ledger cimport Chained, chained_drop, chained_find, chained_free, chained_init, chained_put
from bookie._fast.base.sync cimport (
    bk_add,
    bk_load,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
    wall_ms,
)
from bookie._fast.base.types cimport NEED_MORE, NO_LEDGER, OK, PENDING, TOO_MANY_REQUESTS
from bookie._fast.base.waker cimport waker_clear, waker_init
from bookie._fast.store.ledger_table cimport Ledger, ledger_find
from bookie._fast.store.notices cimport BOARD_MOST, NOTICES_MOST, notices_take
from bookie._fast.store.storage cimport StorageEngine
from bookie._fast.store.stores cimport Shard, shard_of, store_of

cdef extern from "<unistd.h>" nogil:
    int c_close "close"(int) noexcept

cdef enum:
    HEAP_FIRST = 16
    TICK_NS = 10000000           # deadlines are rounded up to multiples of this, so that many polls end in one round
    TIMEOUT_MS_MOST = 0x7FFFFFFF  # longer timeouts (24 days) are reduced to this, so that no sum overflows


cdef struct Change:
    # The state of the ledger after a notice.
    bint gone
    int64_t lac
    int64_t events
    int64_t lac_time_ms


# --- the heap ---

cdef inline void put_at(Polls* polls, uint32_t at, Poll* poll) noexcept nogil:
    polls.heap[at] = poll
    poll.heap_at = at


cdef void sift_up(Polls* polls, uint32_t at) noexcept nogil:
    cdef Poll* poll = polls.heap[at]
    cdef uint32_t up
    while at:
        up = (at - 1) // 2
        if polls.heap[up].deadline_ns <= poll.deadline_ns:
            break
        put_at(polls, at, polls.heap[up])
        at = up
    put_at(polls, at, poll)


cdef void sift_down(Polls* polls, uint32_t at) noexcept nogil:
    cdef Poll* poll = polls.heap[at]
    cdef uint32_t down = at * 2 + 1
    while down < polls.count:
        if down + 1 < polls.count and polls.heap[down + 1].deadline_ns < polls.heap[down].deadline_ns:
            down += 1
        if poll.deadline_ns <= polls.heap[down].deadline_ns:
            break
        put_at(polls, at, polls.heap[down])
        at = down
        down = at * 2 + 1
    put_at(polls, at, poll)


cdef bint heap_push(Polls* polls, Poll* poll) noexcept nogil:
    cdef uint32_t room
    cdef Poll** grown
    if polls.count == polls.heap_room:
        room = polls.heap_room * 2 if polls.heap_room else HEAP_FIRST
        grown = <Poll**> realloc(polls.heap, room * sizeof(Poll*))
        if grown == NULL:
            return False
        polls.heap = grown
        polls.heap_room = room
    put_at(polls, polls.count, poll)
    polls.count += 1
    sift_up(polls, polls.count - 1)
    return True


cdef void heap_remove(Polls* polls, const Poll* poll) noexcept nogil:
    cdef uint32_t at = poll.heap_at
    cdef Poll* last
    polls.count -= 1
    last = polls.heap[polls.count]
    if last == poll:
        return
    put_at(polls, at, last)
    sift_up(polls, at)
    sift_down(polls, last.heap_at)


# --- the hash table of ledgers ---

cdef Watched* watched_find(const Polls* polls, int64_t ledger) noexcept nogil:
    return <Watched*> chained_find(&polls.watched, ledger) if polls.watched.count else NULL


cdef Watched* watched_get(Polls* polls, int64_t ledger) noexcept nogil:
    """Return the ledger's Watched, creating it if needed; NULL without memory."""
    cdef Watched* watched = watched_find(polls, ledger)
    if watched != NULL:
        return watched
    if polls.watched.size == 0 and not chained_init(&polls.watched):
        return NULL
    watched = <Watched*> malloc(sizeof(Watched))
    if watched == NULL:
        return NULL
    watched.chained.ledger = ledger
    watched.first = NULL
    chained_put(&polls.watched, &watched.chained)
    return watched


cdef void free_tables(Polls* polls) noexcept nogil:
    chained_free(&polls.watched)
    free(polls.heap)
    polls.heap = NULL
    polls.heap_room = 0


cdef void watched_drop(Polls* polls, Watched* watched) noexcept nogil:
    """Remove a ledger for which no poll waits; the last one takes the tables along."""
    chained_drop(&polls.watched, &watched.chained)
    free(watched)
    if polls.watched.count == 0:
        free_tables(polls)


# --- the three lists of a poll ---

cdef void link(Poll* poll, Watched* to) noexcept nogil:
    poll.watched = to
    poll.prev = NULL
    poll.next = to.first
    if to.first != NULL:
        to.first.prev = poll
    to.first = poll


cdef void unlink(Poll* poll) noexcept nogil:
    if poll.prev != NULL:
        poll.prev.next = poll.next
    else:
        poll.watched.first = poll.next
    if poll.next != NULL:
        poll.next.prev = poll.prev


cdef void own(Poll* poll, PollOwner* owner) noexcept nogil:
    poll.owner = owner
    poll.owner_prev = NULL
    poll.owner_next = owner.first
    if owner.first != NULL:
        owner.first.owner_prev = poll
    owner.first = poll
    owner.count += 1


cdef void disown(Poll* poll) noexcept nogil:
    if poll.owner_prev != NULL:
        poll.owner_prev.owner_next = poll.owner_next
    else:
        poll.owner.first = poll.owner_next
    if poll.owner_next != NULL:
        poll.owner_next.owner_prev = poll.owner_prev
    poll.owner.count -= 1


cdef void stop_waiting(Polls* polls, Poll* poll) noexcept nogil:
    """Remove a poll from the heap and from its ledger's list; the list is dropped with its last poll."""
    cdef Watched* watched = poll.watched
    heap_remove(polls, poll)
    unlink(poll)
    if watched.first == NULL:
        watched_drop(polls, watched)


cdef void discard(Polls* polls, Poll* poll) noexcept nogil:
    disown(poll)
    bk_add(&polls.limits.waiting, -1)
    free(poll)


# --- the functions that a loop calls ---

cdef void polls_init(Polls* polls, Storage* stores, PollLimits* limits, uint32_t index, Waker* waker) noexcept nogil:
    memset(polls, 0, sizeof(Polls))
    polls.stores = stores
    polls.limits = limits
    polls.bit = <uint64_t> 1 << index
    polls.notices.waker = waker
    pthread_mutex_init(&polls.notices.lock, NULL)
    stores.board.loops[index] = &polls.notices


cdef void polls_free(Polls* polls) noexcept nogil:
    free_tables(polls)


cdef Status begin(Polls* polls, int64_t ledger_id, int64_t previous_lac, bint timed_out,
                  int64_t* events) noexcept nogil:
    """Decide whether to wait, under the ledger's shard, so that no change falls between this and the wait."""
    cdef Shard* shard = shard_of(store_of(polls.stores, ledger_id), ledger_id)
    cdef Ledger* ledger
    cdef Status status = PENDING
    pthread_mutex_lock(&shard.lock)
    ledger = ledger_find(&shard.ledgers, ledger_id)
    if ledger == NULL:
        status = NO_LEDGER
    elif ledger.lac > previous_lac:
        status = OK
    elif not ledger.lac_known:
        status = NEED_MORE
    elif timed_out:
        status = OK
    else:
        ledger.watchers |= polls.bit
        events[0] = ledger.events
    pthread_mutex_unlock(&shard.lock)
    return status


cdef Poll* new_poll(Polls* polls, PollOwner* owner, const ReadRequest* request, int64_t deadline) noexcept nogil:
    """Create a poll in all its lists; NULL if over a limit or without memory."""
    cdef Poll* poll
    cdef Watched* watched
    if owner.count >= polls.limits.per_owner_max:
        return NULL
    if bk_add(&polls.limits.waiting, 1) <= polls.limits.waiting_max:
        poll = <Poll*> malloc(sizeof(Poll))
        if poll != NULL:
            watched = watched_get(polls, request.ledger)
            poll.deadline_ns = deadline
            if watched != NULL and heap_push(polls, poll):
                poll.request = request[0]
                poll.lac_time_ms = 0
                poll.expired = False
                link(poll, watched)
                own(poll, owner)
                return poll
            if watched != NULL and watched.first == NULL:
                watched_drop(polls, watched)
            free(poll)
    bk_add(&polls.limits.waiting, -1)
    return NULL


cdef Status polls_wait(Polls* polls, PollOwner* owner, const ReadRequest* request, int64_t previous_lac,
                       int64_t timeout_ms, int64_t now) noexcept nogil:
    cdef Poll* poll
    cdef int64_t deadline
    cdef int64_t events = 0
    cdef Status status = begin(polls, request.ledger, previous_lac, timeout_ms <= 0, &events)
    if status != PENDING:
        return status
    deadline = now + (timeout_ms if timeout_ms < TIMEOUT_MS_MOST else TIMEOUT_MS_MOST) * 1000000
    deadline += TICK_NS - 1
    poll = new_poll(polls, owner, request, deadline - deadline % TICK_NS)
    if poll == NULL:
        polls.stats.long_polls_refused += 1
        return TOO_MANY_REQUESTS     # the watcher bit stays, which costs one needless notice
    poll.previous_lac = previous_lac
    poll.events = events
    polls.stats.long_polls += 1
    return PENDING


cdef Change look(Polls* polls, int64_t ledger_id) noexcept nogil:
    """Return the current state of the ledger, and request a notice of its next change."""
    cdef Shard* shard = shard_of(store_of(polls.stores, ledger_id), ledger_id)
    cdef Ledger* ledger
    cdef Change change
    memset(&change, 0, sizeof(change))
    pthread_mutex_lock(&shard.lock)
    ledger = ledger_find(&shard.ledgers, ledger_id)
    change.gone = ledger == NULL
    if ledger != NULL:
        ledger.watchers |= polls.bit
        change.lac = ledger.lac
        change.events = ledger.events
        # Zero: the notice was for another change, and the LAC had risen before this call.
        change.lac_time_ms = ledger.lac_time_ms if ledger.lac_time_ms else wall_ms()
    pthread_mutex_unlock(&shard.lock)
    return change


cdef void end_changed(Polls* polls, Watched* watched) noexcept nogil:
    """End the polls that the ledger's change ends. Their list is dropped with its last poll."""
    cdef Change change = look(polls, watched.chained.ledger)
    cdef Poll* poll = watched.first
    cdef Poll* following
    cdef bint rose
    while poll != NULL:
        following = poll.next
        rose = not change.gone and change.lac > poll.previous_lac
        if rose or change.gone or change.events != poll.events:
            poll.lac_time_ms = change.lac_time_ms if rose else 0
            polls.stats.long_polls_notified += 1
            stop_waiting(polls, poll)
            link(poll, &polls.ended)
        poll = following


cdef void end_all_changed(Polls* polls) noexcept nogil:
    """Look at every ledger, because more of them changed than the notices could hold."""
    cdef uint32_t size = polls.watched.size
    cdef uint32_t i
    cdef Chained* at
    cdef Chained* following
    for i in range(size):
        at = polls.watched.buckets[i]
        while at != NULL:
            following = at.next
            end_changed(polls, <Watched*> at)
            at = following
        if polls.watched.size == 0:
            return               # the last ledger was removed, with the tables


cdef void polls_pass(Polls* polls, int64_t now) noexcept nogil:
    cdef int64_t ids[NOTICES_MOST]
    cdef int64_t count, i
    cdef bint everything = False
    cdef Watched* watched
    cdef Poll* poll
    if bk_load(&polls.notices.count):
        count = notices_take(&polls.notices, ids, &everything)
        if everything:
            end_all_changed(polls)
        else:
            for i in range(count):
                watched = watched_find(polls, ids[i])
                if watched != NULL:
                    end_changed(polls, watched)
    while polls.count and polls.heap[0].deadline_ns <= now:
        poll = polls.heap[0]
        polls.stats.long_polls_expired += 1
        poll.expired = True
        stop_waiting(polls, poll)
        link(poll, &polls.ended)


cdef bint polls_next(Polls* polls, Poll* poll) noexcept nogil:
    cdef Poll* ended = polls.ended.first
    if ended == NULL:
        return False
    unlink(ended)
    poll[0] = ended[0]
    discard(polls, ended)
    return True


cdef int64_t polls_cancel(Polls* polls, PollOwner* owner) noexcept nogil:
    cdef int64_t count = owner.count
    cdef Poll* poll
    while owner.first != NULL:
        poll = owner.first
        if poll.watched == &polls.ended:
            unlink(poll)
        else:
            stop_waiting(polls, poll)
        discard(polls, poll)
    polls.stats.long_polls_cancelled += count
    return count


cdef int polls_timeout_ms(const Polls* polls, int64_t now) noexcept nogil:
    cdef int64_t left
    if polls.ended.first != NULL:
        return 0
    if polls.count == 0:
        return -1
    left = (polls.heap[0].deadline_ns - now + 999999) // 1000000
    if left <= 0:
        return 0
    return <int> left if left < 3600000 else 3600000


BUDGETED = POLL_BYTES


cdef class LongPolls:
    """The polls of a loop that does not exist, for tests, which pass the time to each call."""

    cdef Polls polls
    cdef PollLimits limits
    cdef Waker waker
    cdef dict owners
    cdef object stores_room

    def __cinit__(self, StorageEngine stores, *, waiting_max: int, per_owner_max: int):
        self.stores_room = stores
        self.owners = {}
        self.limits.waiting_max = waiting_max
        self.limits.per_owner_max = per_owner_max
        if stores.stores.loop_count == BOARD_MOST or not waker_init(&self.waker):
            raise OSError("no descriptor or no place is left for another loop")
        polls_init(&self.polls, stores.stores, &self.limits, stores.stores.loop_count, &self.waker)
        stores.stores.loops[stores.stores.loop_count] = &self.waker
        stores.stores.loop_count += 1

    def wait(self, owner: int, number: int, ledger: int, previous_lac: int, timeout_ms: int, now_ms: int) -> str:
        """Begin the wait of poll `number`; return the result of `polls_wait` by name."""
        cdef ReadRequest request
        cdef Status status
        memset(&request, 0, sizeof(request))
        request.ledger = ledger
        request.request_id = number
        status = polls_wait(&self.polls, self._owner(owner), &request, previous_lac, timeout_ms, now_ms * 1000000)
        names = {OK: "OK", PENDING: "PENDING", NO_LEDGER: "NO_LEDGER", NEED_MORE: "NEED_MORE",
                 TOO_MANY_REQUESTS: "TOO_MANY_REQUESTS"}
        return names[<int> status]

    cdef PollOwner* _owner(self, owner) except NULL:
        if owner not in self.owners:
            self.owners[owner] = bytearray(sizeof(PollOwner))
        cdef unsigned char[::1] view = self.owners[owner]
        return <PollOwner*> &view[0]

    def take(self, now_ms: int) -> list[tuple[int, bool]]:
        """Return the numbers of ended polls, in order, and whether a rise of the LAC ended them."""
        cdef Poll poll
        waker_clear(&self.waker)
        polls_pass(&self.polls, now_ms * 1000000 if now_ms >= 0 else INT64_MAX)
        found = []
        while polls_next(&self.polls, &poll):
            found.append((poll.request.request_id, poll.lac_time_ms != 0))
        return sorted(found)

    def cancel(self, owner: int) -> int:
        """Cancel the polls of a connection; return their number."""
        return polls_cancel(&self.polls, self._owner(owner))

    def timeout_ms(self, now_ms: int) -> int:
        """Return how long a loop may sleep."""
        return polls_timeout_ms(&self.polls, now_ms * 1000000)

    def state(self) -> dict[str, int]:
        """Return the sizes of all tables, and the counters."""
        cdef Polls* polls = &self.polls
        return {
            **<dict> polls.stats, "waiting": bk_load(&self.limits.waiting), "heap": polls.count,
            "heap_room": polls.heap_room, "ledgers": polls.watched.count, "buckets": polls.watched.size,
            "poll_bytes": sizeof(Poll) + sizeof(Watched),
        }

    def close(self) -> None:
        """Cancel everything. The stores have stopped."""
        for owner in self.owners:
            self.cancel(owner)
        polls_free(&self.polls)
        if self.waker.fd >= 0:
            c_close(self.waker.fd)
        self.waker.fd = -1
