"""One transaction for a slice, with the runs of each ledger in the order of their flushes."""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, qsort, realloc
from libc.string cimport memcpy, memmove, memset

from bookie._fast.base.op_stats cimport op_note
from bookie._fast.base.planted cimport PLANT_PENDING_LOST, PLANT_PENDING_MARKED, bk_planted
from bookie._fast.base.sync cimport bk_load, now_ns
from bookie._fast.base.types cimport NO_MEMORY, OK
from bookie._fast.index.location cimport index_abort, index_begin, index_commit, index_put_some
from bookie._fast.index.pending cimport (
    batch_append,
    batch_describe,
    batch_find,
    batch_free,
    pending_drop,
    pending_publish,
    pending_remove,
    pending_shard,
)
from bookie._fast.store.changed_ledgers cimport ledgers_put
from bookie._fast.store.index_turn cimport NOTED_MOST

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void*) noexcept nogil

cdef enum:
    AHEAD = 8                    # runs between the one that is put and the one that is prefetched
    RUNS_A_PUT = 1 << 18         # in one transaction, about
    RUNS_MOST = 8                # of a ledger in one flush that may wait: look-ups go through them
    TOGETHER_MOST = 32           # runs of a ledger that are handed to the index at once
    APART_MOST = 1 << 14         # ids between the first and the last one of these
    BYTES_A_LEDGER = 1 << 16     # a flush with more of each ledger hardly gains by waiting

cdef struct Putting:
    int64_t ledger
    uint32_t at                  # of the run in its batch
    uint32_t order               # of the batch, by flushes
    PendingBatch* batch

cdef struct Slice:
    Store* store
    uint32_t first               # shard
    uint32_t shards
    Putting* runs
    uint64_t count
    uint64_t room
    bint no_memory


cdef Status stage_run(Staged* staged, const IndexRun* run) noexcept nogil:
    if staged.ledgers == 0 or run.ledger != staged.last:
        staged.last = run.ledger
        staged.ledgers += 1
    return OK if batch_append(&staged.batches[pending_shard(run.ledger)], run) else NO_MEMORY


cdef void staged_free(Staged* staged) noexcept nogil:
    cdef uint32_t i
    for i in range(PENDING_SHARDS):
        batch_free(staged.batches[i])
    memset(staged, 0, sizeof(Staged))


cdef bint may_wait(const Store* store, const Staged* staged, uint64_t bytes) noexcept nogil:
    if store.turn.ledgers_least == 0 or staged.ledgers < store.turn.ledgers_least or bk_load(&store.lagging):
        return False
    return bytes < staged.ledgers * <uint64_t> BYTES_A_LEDGER


cdef bint too_many_wait(const Store* store) noexcept nogil:
    return bk_load(&store.index.pending.bytes) > store.turn.bytes_most


cdef void take(Slice* slice_, PendingBatch* batch, uint32_t begin, uint32_t end, uint32_t order) noexcept nogil:
    """Take the runs in these places of a batch."""
    cdef uint64_t wanted = slice_.count + end - begin
    cdef Putting* grown
    cdef uint32_t i
    if wanted > slice_.room:
        wanted = max(2 * slice_.room, wanted)
        grown = <Putting*> realloc(slice_.runs, wanted * sizeof(Putting))
        if grown == NULL:
            slice_.no_memory = True
            return
        slice_.runs = grown
        slice_.room = wanted
    for i in range(begin, end):
        if batch.runs[i].count:
            slice_.runs[slice_.count] = Putting(batch.runs[i].ledger, i, order, batch)
            slice_.count += 1


cdef uint32_t take_pending(Slice* slice_, uint32_t shard, int64_t ledger, bint all_of_them) noexcept nogil:
    """Take what is pending of a shard, or of one ledger; return the number of its batches."""
    cdef PendingBatch* batch = slice_.store.index.pending.shards[shard].earliest
    cdef uint32_t order = 0
    cdef uint32_t begin, end
    while batch != NULL:
        begin = 0 if all_of_them else batch_find(batch, ledger)
        end = batch.count
        if not all_of_them:
            end = begin
            while end < batch.count and batch.runs[end].ledger == ledger:
                end += 1
        take(slice_, batch, begin, end, order)
        order += 1
        batch = batch.later
    return order


cdef void take_shards(Slice* slice_, const Staged* staged, uint32_t shards) noexcept nogil:
    """Take the next shards, fewer than `shards` if these have more runs than one transaction should have."""
    cdef uint32_t shard, order
    while slice_.shards < shards and slice_.count < RUNS_A_PUT:
        shard = (slice_.first + slice_.shards) % PENDING_SHARDS
        order = take_pending(slice_, shard, 0, True)
        if staged.batches[shard] != NULL:
            take(slice_, staged.batches[shard], 0, staged.batches[shard].count, order)
        slice_.shards += 1


cdef inline bint is_taken(const Slice* slice_, uint32_t shard) noexcept nogil:
    return (shard + PENDING_SHARDS - slice_.first) % PENDING_SHARDS < slice_.shards


cdef void take_many(Slice* slice_, PendingBatch* batch, uint32_t shard) noexcept nogil:
    """Take all runs of the ledgers that have too many in a staged batch to let them wait."""
    cdef uint32_t begin = 0
    cdef uint32_t end, order
    while begin < batch.count:
        end = begin + 1
        while end < batch.count and batch.runs[end].ledger == batch.runs[begin].ledger:
            end += 1
        if end - begin > RUNS_MOST:
            order = take_pending(slice_, shard, batch.runs[begin].ledger, False)
            take(slice_, batch, begin, end, order)
        begin = end


cdef int in_order(const void* a, const void* b) noexcept nogil:
    cdef const Putting* left = <const Putting*> a
    cdef const Putting* right = <const Putting*> b
    if left.ledger != right.ledger:
        return -1 if left.ledger < right.ledger else 1
    if left.order != right.order:
        return -1 if left.order < right.order else 1
    return -1 if left.at < right.at else 1


cdef uint32_t describe_some(const Slice* slice_, uint64_t begin, IndexRun* runs) noexcept nogil:
    """Describe runs of one ledger that ascend, do not overlap, and are not far apart."""
    cdef uint32_t count = 0
    cdef uint64_t i = begin
    while i < slice_.count and count < TOGETHER_MOST and slice_.runs[i].ledger == slice_.runs[begin].ledger:
        if i + AHEAD < slice_.count:
            prefetch(&slice_.runs[i + AHEAD].batch.runs[slice_.runs[i + AHEAD].at])
        batch_describe(slice_.runs[i].batch, slice_.runs[i].at, &runs[count])
        if count and (runs[count].first < runs[count - 1].first + runs[count - 1].count
                      or runs[count].first - runs[0].first > APART_MOST):
            break
        count += 1
        i += 1
    return count


cdef Status put_runs(const Slice* slice_) noexcept nogil:
    cdef IndexRun runs[TOGETHER_MOST]
    cdef uint64_t i = 0
    cdef uint32_t put = 0
    cdef Status status = OK
    while i < slice_.count and status == OK:
        status = index_put_some(slice_.store.index, runs, describe_some(slice_, i, runs), &put)
        i += put
    return status


cdef Status commit_slice(Slice* slice_, bint ledgers) noexcept nogil:
    cdef Store* store = slice_.store
    cdef int64_t started = now_ns()
    cdef Status status = NO_MEMORY if slice_.no_memory else OK
    if status == OK and ledgers:
        status = ledgers_put(store)
    if status == OK:
        status = put_runs(slice_)
    if status != OK:
        index_abort(store.index)
        return status
    status = index_commit(store.index)
    op_note(&store.ops.index[status == OK], now_ns() - started, 1)
    return status


cdef void drop_put(const Slice* slice_) noexcept nogil:
    """Remove the runs of the slice from the pending ones and from staged batches: the index has them."""
    cdef uint64_t i
    for i in range(slice_.count):
        if not is_taken(slice_, pending_shard(slice_.runs[i].ledger)):
            if i == 0 or slice_.runs[i].ledger != slice_.runs[i - 1].ledger:
                pending_remove(&slice_.store.index.pending, slice_.runs[i].ledger)
            slice_.runs[i].batch.runs[slice_.runs[i].at].count = 0
    for i in range(slice_.shards):
        pending_drop(&slice_.store.index.pending, (slice_.first + <uint32_t> i) % PENDING_SHARDS)


cdef void publish_rest(const Slice* slice_, Staged* staged) noexcept nogil:
    """Make the staged runs of other shards pending."""
    cdef uint32_t i
    for i in range(PENDING_SHARDS):
        if staged.batches[i] != NULL and not is_taken(slice_, i):
            pending_publish(&slice_.store.index.pending, i, staged.batches[i])
            staged.batches[i] = NULL


cdef Status put_slice(Store* store, Staged* staged, uint32_t shards, bint ledgers) noexcept nogil:
    cdef Slice slice_
    cdef uint32_t i
    cdef Status status
    memset(&slice_, 0, sizeof(Slice))
    slice_.store = store
    slice_.first = <uint32_t> (store.turn.shards_put % PENDING_SHARDS)
    take_shards(&slice_, staged, shards)
    for i in range(PENDING_SHARDS):
        if staged.batches[i] != NULL and not is_taken(&slice_, i):
            take_many(&slice_, staged.batches[i], i)
    qsort(slice_.runs, slice_.count, sizeof(Putting), in_order)
    status = commit_slice(&slice_, ledgers)
    if status == OK or bk_planted(PLANT_PENDING_LOST):
        drop_put(&slice_)
    if status == OK:
        publish_rest(&slice_, staged)
        store.turn.shards_put += slice_.shards
    free(slice_.runs)
    return status


cdef Status put_flushed(Store* store, Staged* staged, uint32_t shards) noexcept nogil:
    return put_slice(store, staged, shards, True)


cdef Status put_pending(Store* store, uint32_t shards) noexcept nogil:
    cdef Staged none
    cdef Status status = index_begin(store.index)
    memset(&none, 0, sizeof(Staged))
    return put_slice(store, &none, shards, False) if status == OK else status


cdef void turn_note_mark(Store* store, const int64_t* ids, const uint64_t* offsets) noexcept nogil:
    cdef NotedMark* noted = &store.turn.noted[store.turn.noted_count]
    if store.turn.noted_count == NOTED_MOST:
        return                   # a later one will do
    noted.shards_put = store.turn.shards_put
    memcpy(noted.ids, ids, sizeof(noted.ids))
    memcpy(noted.offsets, offsets, sizeof(noted.offsets))
    store.turn.noted_count += 1


cdef const NotedMark* turn_mark_due(Store* store) noexcept nogil:
    cdef uint32_t due = store.turn.noted_count
    if bk_load(&store.index.pending.runs) and not bk_planted(PLANT_PENDING_MARKED):
        while due and store.turn.noted[due - 1].shards_put + PENDING_SHARDS > store.turn.shards_put:
            due -= 1
    if due == 0:
        return NULL
    store.turn.due = store.turn.noted[due - 1]
    memmove(&store.turn.noted[0], &store.turn.noted[due], (store.turn.noted_count - due) * sizeof(NotedMark))
    store.turn.noted_count -= due
    return &store.turn.due


cdef void turn_forget_marks(Store* store) noexcept nogil:
    store.turn.noted_count = 0
