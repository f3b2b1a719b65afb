"""One transaction for a slice, with the runs of each ledger in the order of their flushes."""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport bsearch, free, qsort, realloc
from libc.string cimport memcpy, memmove, memset

from bookie._fast.base.by_ledger cimport ascending_ids, ledger_shard
from bookie._fast.base.op_stats cimport op_note
from bookie._fast.base.planted cimport PLANT_PENDING_LOST, PLANT_PENDING_MARKED, bk_planted
from bookie._fast.base.sync cimport bk_load, now_ns
from bookie._fast.base.types cimport NO_MEMORY, OK
from bookie._fast.index.location cimport (
    index_abort,
    index_begin,
    index_commit,
    index_put_run,
    index_put_some,
    index_run_leaves,
)
from bookie._fast.index.pending cimport (
    batch_append,
    batch_describe,
    batch_find,
    batch_free,
    pending_drop,
    pending_publish,
    pending_remove,
)
from bookie._fast.store.changed_ledgers cimport ledgers_put
from bookie._fast.store.index_turn cimport NOTED_MOST

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void*) noexcept nogil

cdef enum:
    AHEAD = 8                    # runs between the one that is put and the one that is prefetched
    RUNS_A_PUT = 1 << 18         # in one transaction, about
    RUNS_A_LEAF = 32             # a cautious guess: up to 90 fit
    LMDB_PAGE = 4096             # bytes
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


cdef Status stage_run(Store* store, Staged* staged, const IndexRun* run) noexcept nogil:
    cdef Status status
    if staged.ledgers == 0 or run.ledger != staged.last:
        staged.last = run.ledger
        staged.ledgers += 1
        staged.runs = 0
        staged.at_once = False
    if not staged.at_once and staged.runs == RUNS_MOST:
        status = put_at_once(store, staged)
        if status != OK:
            return status
    if staged.at_once:
        return index_put_run(store.index, run)
    staged.runs += 1
    return OK if batch_append(&staged.batches[ledger_shard(run.ledger)], run) else NO_MEMORY


cdef Status put_at_once(Store* store, Staged* staged) noexcept nogil:
    """Put what is pending and staged of the last ledger, of which too many runs would wait."""
    cdef uint32_t shard = ledger_shard(staged.last)
    cdef PendingBatch* batch = store.index.pending.shards[shard].earliest
    cdef PendingBatch* own = staged.batches[shard]
    cdef Status status = OK if note_put(staged) else NO_MEMORY
    while batch != NULL and status == OK:
        status = put_some_of(store, batch, staged.last)
        batch = batch.later
    if status == OK:
        status = put_some_of(store, own, staged.last)
    if status == OK:
        own.count -= staged.runs
        own.lengths_count = own.runs[own.count].lengths_at
        staged.at_once = True
    return status


cdef bint note_put(Staged* staged) noexcept nogil:
    cdef uint32_t room = 2 * staged.put_room if staged.put_room else 64
    cdef int64_t* grown
    if staged.put_count == staged.put_room:
        grown = <int64_t*> realloc(staged.put, room * sizeof(int64_t))
        if grown == NULL:
            return False
        staged.put = grown
        staged.put_room = room
    staged.put[staged.put_count] = staged.last
    staged.put_count += 1
    return True


cdef Status put_some_of(Store* store, const PendingBatch* batch, int64_t ledger) noexcept nogil:
    """Put the runs of one ledger in a batch."""
    cdef IndexRun described
    cdef uint32_t at = batch_find(batch, ledger)
    cdef Status status = OK
    while at < batch.count and batch.runs[at].ledger == ledger and status == OK:
        batch_describe(batch, at, &described)
        if described.count:
            status = index_put_run(store.index, &described)
        at += 1
    return status


cdef void staged_free(Staged* staged) noexcept nogil:
    cdef uint32_t i
    for i in range(LEDGER_SHARDS):
        batch_free(staged.batches[i])
    free(staged.put)
    memset(staged, 0, sizeof(Staged))


cdef uint32_t slice_of(const Store* store, const Staged* staged, uint64_t bytes) noexcept nogil:
    cdef uint64_t shards
    if store.turn.ledgers_least == 0 or staged.ledgers < store.turn.ledgers_least or bk_load(&store.lagging):
        return LEDGER_SHARDS
    if bytes >= staged.ledgers * <uint64_t> BYTES_A_LEDGER:
        return LEDGER_SHARDS
    shards = (bytes * LEDGER_SHARDS + store.turn.bytes - 1) // store.turn.bytes
    return <uint32_t> min(max(shards, <uint64_t> SLICE_SHARDS), <uint64_t> LEDGER_SHARDS)


cdef bint too_many_wait(const Store* store) noexcept nogil:
    return bk_load(&store.index.pending.bytes) > store.turn.pending_most


cdef inline bint is_put(const Staged* staged, int64_t ledger) noexcept nogil:
    """Return whether the open transaction has what is pending of the ledger, and newer runs."""
    return staged.put_count and bsearch(&ledger, staged.put, staged.put_count, sizeof(int64_t), ascending_ids) != NULL


cdef void take(Slice* slice_, const Staged* staged, PendingBatch* batch, uint32_t order) noexcept nogil:
    cdef uint64_t wanted = slice_.count + batch.count
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
    for i in range(batch.count):
        if batch.runs[i].count and not is_put(staged, batch.runs[i].ledger):
            slice_.runs[slice_.count] = Putting(batch.runs[i].ledger, i, order, batch)
            slice_.count += 1


cdef void take_shard(Slice* slice_, const Staged* staged) noexcept nogil:
    cdef uint32_t shard = (slice_.first + slice_.shards) % LEDGER_SHARDS
    cdef PendingBatch* batch = slice_.store.index.pending.shards[shard].earliest
    cdef uint32_t order = 0
    while batch != NULL:
        take(slice_, staged, batch, order)
        order += 1
        batch = batch.later
    if staged.batches[shard] != NULL:
        take(slice_, staged, staged.batches[shard], order)
    slice_.shards += 1


cdef inline bint is_taken(const Slice* slice_, uint32_t shard) noexcept nogil:
    return (shard + LEDGER_SHARDS - slice_.first) % LEDGER_SHARDS < slice_.shards


cdef int in_order(const void* a, const void* b) noexcept nogil:
    cdef const Putting* left = <const Putting*> a
    cdef const Putting* right = <const Putting*> b
    if left.ledger != right.ledger:
        return -1 if left.ledger < right.ledger else 1
    if left.order != right.order:
        return -1 if left.order < right.order else 1
    return -1 if left.at < right.at else 1


cdef void sort(Slice* slice_, uint64_t begin) noexcept nogil:
    """Put what was taken from `begin` on in the order in which the index takes it."""
    if slice_.count > begin:
        qsort(slice_.runs + begin, slice_.count - begin, sizeof(Putting), in_order)


cdef uint64_t leaves_of(const Slice* slice_, uint64_t begin) noexcept nogil:
    """Return about how many leaves the sorted runs from `begin` on change, if no leaf has those of several ledgers."""
    cdef uint64_t leaves = (slice_.count - begin) // RUNS_A_LEAF
    cdef uint64_t i
    for i in range(begin, slice_.count):
        leaves += i == begin or slice_.runs[i].ledger != slice_.runs[i - 1].ledger
    return leaves


cdef void take_shards(Slice* slice_, const Staged* staged, uint32_t shards) noexcept nogil:
    """Take the next shards, fewer than `shards` if one transaction should not put all of these.

    In a small index, all runs are put in one order, so that each leaf is searched for once. In a larger one, this is
    done shard by shard, until the pages that change have the memory that a transaction may take.
    """
    cdef uint64_t most = slice_.store.turn.leaves
    cdef bint large = index_run_leaves(slice_.store.index) > most
    cdef uint64_t leaves = 0
    cdef uint64_t begin
    while slice_.shards < shards and slice_.count < RUNS_A_PUT and leaves < most:
        begin = slice_.count
        take_shard(slice_, staged)
        if large:
            sort(slice_, begin)
            leaves += leaves_of(slice_, begin)
    if not large:
        sort(slice_, 0)


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


cdef void drop_put(const Slice* slice_, const Staged* staged) noexcept nogil:
    """Remove what the index has now from the pending runs."""
    cdef uint32_t i
    for i in range(staged.put_count):
        pending_remove(&slice_.store.index.pending, staged.put[i])
    for i in range(slice_.shards):
        pending_drop(&slice_.store.index.pending, (slice_.first + i) % LEDGER_SHARDS)


cdef void publish_rest(const Slice* slice_, Staged* staged) noexcept nogil:
    """Make the staged runs of other shards pending."""
    cdef uint32_t i
    for i in range(LEDGER_SHARDS):
        if staged.batches[i] != NULL and staged.batches[i].count and not is_taken(slice_, i):
            pending_publish(&slice_.store.index.pending, i, staged.batches[i])
            staged.batches[i] = NULL


cdef Status put_slice(Store* store, Staged* staged, uint32_t shards, bint ledgers) noexcept nogil:
    cdef Slice slice_
    cdef Status status
    memset(&slice_, 0, sizeof(Slice))
    slice_.store = store
    slice_.first = <uint32_t> (store.turn.shards_put % LEDGER_SHARDS)
    take_shards(&slice_, staged, shards)
    status = commit_slice(&slice_, ledgers)
    if status == OK or bk_planted(PLANT_PENDING_LOST):
        drop_put(&slice_, staged)
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
        while due and store.turn.noted[due - 1].shards_put + LEDGER_SHARDS > store.turn.shards_put:
            due -= 1
    if due == 0:
        return NULL
    store.turn.due = store.turn.noted[due - 1]
    memmove(&store.turn.noted[0], &store.turn.noted[due], (store.turn.noted_count - due) * sizeof(NotedMark))
    store.turn.noted_count -= due
    return &store.turn.due


cdef void turn_forget_marks(Store* store) noexcept nogil:
    store.turn.noted_count = 0


def transaction_bytes(uint64_t leaves, uint64_t ledgers) -> int:
    """Return the memory of a transaction that is to change so many leaves of an index with so many ledgers: its list of
    runs, and the changed pages. The shard with which it reaches that number is put, too. Half as many branches are
    plenty: each has 60 children or more.
    """
    return RUNS_A_PUT * sizeof(Putting) + (leaves + ledgers // LEDGER_SHARDS) * 3 // 2 * LMDB_PAGE
