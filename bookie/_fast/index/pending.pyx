"""Batches of runs. A look-up searches all batches of its shard, of which store.index_slices keeps few."""
from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy

from bookie._fast.base.by_ledger cimport ledger_shard
from bookie._fast.base.planted cimport PLANT_PENDING_UNREAD, bk_planted
from bookie._fast.base.sync cimport (
    bk_add,
    bk_load,
    pthread_mutex_destroy,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)
from bookie._fast.base.types cimport LENGTH_PREFIX, OK

cdef enum:
    ROOM_FIRST = 64


cdef void pending_init(Pending* pending) noexcept nogil:
    cdef uint32_t i
    for i in range(LEDGER_SHARDS):
        pthread_mutex_init(&pending.shards[i].lock, NULL)


cdef void pending_free(Pending* pending) noexcept nogil:
    cdef uint32_t i
    for i in range(LEDGER_SHARDS):
        pending_drop(pending, i)
        pthread_mutex_destroy(&pending.shards[i].lock)


# --- batches ---

cdef bint make_room(void** items, uint32_t size, uint32_t wanted, uint32_t* room) noexcept nogil:
    """Let there be room for `wanted` items of this size."""
    cdef uint32_t more = max(<uint32_t> ROOM_FIRST, 2 * room[0], wanted)
    cdef void* grown
    if wanted <= room[0]:
        return True
    grown = realloc(items[0], <size_t> more * size)
    if grown == NULL:
        return False
    items[0] = grown
    room[0] = more
    return True


cdef bint batch_append(PendingBatch** batch, const IndexRun* run) noexcept nogil:
    cdef PendingBatch* to = batch[0]
    cdef PendingRun* one
    if to == NULL:
        to = batch[0] = <PendingBatch*> calloc(1, sizeof(PendingBatch))
        if to == NULL:
            return False
    if not make_room(<void**> &to.runs, sizeof(PendingRun), to.count + 1, &to.room):
        return False
    if not make_room(<void**> &to.lengths, sizeof(uint32_t), to.lengths_count + run.count, &to.lengths_room):
        return False
    one = &to.runs[to.count]
    one.ledger, one.first, one.offset, one.log_id, one.count = run.ledger, run.first, run.offset, run.log_id, run.count
    one.lengths_at = to.lengths_count
    memcpy(to.lengths + to.lengths_count, run.lengths, run.count * sizeof(uint32_t))
    to.lengths_count += run.count
    to.count += 1
    return True


cdef void batch_free(PendingBatch* batch) noexcept nogil:
    if batch != NULL:
        free(batch.runs)
        free(batch.lengths)
        free(batch)


cdef uint32_t batch_find(const PendingBatch* batch, int64_t ledger) noexcept nogil:
    cdef uint32_t low = 0
    cdef uint32_t high = batch.count
    cdef uint32_t middle
    while low < high:
        middle = (low + high) // 2
        if batch.runs[middle].ledger < ledger:
            low = middle + 1
        else:
            high = middle
    return low


cdef void batch_describe(const PendingBatch* batch, uint32_t at, IndexRun* out) noexcept nogil:
    cdef const PendingRun* run = &batch.runs[at]
    out.ledger, out.first, out.offset, out.log_id, out.count = run.ledger, run.first, run.offset, run.log_id, run.count
    out.lengths = batch.lengths + run.lengths_at


cdef int64_t batch_bytes(const PendingBatch* batch) noexcept nogil:
    return sizeof(PendingBatch) + batch.room * sizeof(PendingRun) + batch.lengths_room * sizeof(uint32_t)


cdef int64_t entries_of(const PendingBatch* batch, const PendingRun* run) noexcept nogil:
    cdef int64_t entries = 0
    cdef uint32_t i
    for i in range(run.lengths_at, run.lengths_at + run.count):
        entries += batch.lengths[i] != 0
    return entries


cdef void count(Pending* pending, const PendingBatch* batch, int64_t sign) noexcept nogil:
    cdef int64_t runs = 0
    cdef int64_t entries = 0
    cdef uint32_t i
    for i in range(batch.count):
        if batch.runs[i].count:
            runs += 1
            entries += entries_of(batch, &batch.runs[i])
    bk_add(&pending.runs, sign * runs)
    bk_add(&pending.entries, sign * entries)
    bk_add(&pending.bytes, sign * batch_bytes(batch))


cdef void shrink(PendingBatch* batch) noexcept nogil:
    """Give back what the arrays do not use."""
    cdef void* less = realloc(batch.runs, max(batch.count, <uint32_t> 1) * sizeof(PendingRun))
    if less != NULL:
        batch.runs = <PendingRun*> less
        batch.room = batch.count
    less = realloc(batch.lengths, max(batch.lengths_count, <uint32_t> 1) * sizeof(uint32_t))
    if less != NULL:
        batch.lengths = <uint32_t*> less
        batch.lengths_room = batch.lengths_count


# --- shards ---

cdef void pending_publish(Pending* pending, uint32_t shard, PendingBatch* batch) noexcept nogil:
    cdef PendingShard* to = &pending.shards[shard]
    shrink(batch)
    count(pending, batch, 1)
    pthread_mutex_lock(&to.lock)
    if to.latest == NULL:
        to.earliest = batch
    else:
        to.latest.later = batch
    to.latest = batch
    pthread_mutex_unlock(&to.lock)


cdef void pending_remove(Pending* pending, int64_t ledger) noexcept nogil:
    cdef PendingShard* shard = &pending.shards[ledger_shard(ledger)]
    cdef PendingBatch* batch = shard.earliest
    cdef PendingRun* run
    cdef uint32_t at
    while batch != NULL:
        at = batch_find(batch, ledger)
        while at < batch.count and batch.runs[at].ledger == ledger:
            run = &batch.runs[at]
            if run.count:
                bk_add(&pending.runs, -1)
                bk_add(&pending.entries, -entries_of(batch, run))
            pthread_mutex_lock(&shard.lock)
            run.count = 0
            pthread_mutex_unlock(&shard.lock)
            at += 1
        batch = batch.later


cdef void pending_drop(Pending* pending, uint32_t shard) noexcept nogil:
    cdef PendingShard* of = &pending.shards[shard]
    cdef PendingBatch* batch
    cdef PendingBatch* later
    pthread_mutex_lock(&of.lock)
    batch = of.earliest
    of.earliest = of.latest = NULL
    pthread_mutex_unlock(&of.lock)
    while batch != NULL:
        later = batch.later
        count(pending, batch, -1)
        batch_free(batch)
        batch = later


# --- look-ups ---

cdef inline int64_t first_from(const PendingBatch* batch, const PendingRun* run, int64_t entry) noexcept nogil:
    """Return the run's first entry with id >= `entry`, or INT64_MAX."""
    cdef const uint32_t* lengths = batch.lengths + run.lengths_at
    cdef int64_t slot = entry - run.first
    if run.count == 0 or slot >= <int64_t> run.count:
        return INT64_MAX
    if entry <= run.first:
        return run.first
    while lengths[slot] == 0:        # ends: the last slot is present
        slot += 1
    return run.first + slot


cdef int64_t batch_next(const PendingBatch* batch, int64_t ledger, int64_t entry, uint32_t* found) noexcept nogil:
    """Return the first entry of the ledger with id >= `entry`, and its run; INT64_MAX if there is none."""
    cdef uint32_t at = batch_find(batch, ledger)
    cdef int64_t first
    while at < batch.count and batch.runs[at].ledger == ledger:
        first = first_from(batch, &batch.runs[at], entry)
        if first != INT64_MAX:
            found[0] = at
            return first             # the runs are in order
        at += 1
    return INT64_MAX


cdef void describe_hit(const PendingBatch* batch, uint32_t at, int64_t entry, int64_t upper,
                       IndexHit* hit) noexcept nogil:
    """Describe an entry of the run. The span ends before the id `upper`, and at a gap, whose entry the index may have.
    """
    cdef const PendingRun* run = &batch.runs[at]
    cdef const uint32_t* lengths = batch.lengths + run.lengths_at
    cdef uint32_t slot = <uint32_t> (entry - run.first)
    cdef uint32_t i
    hit.entry = entry
    hit.log_id = run.log_id
    hit.offset = run.offset
    hit.length = lengths[slot]
    hit.span_bytes = 0
    hit.span_entries = 0
    for i in range(slot):
        if lengths[i]:
            hit.offset += <uint64_t> lengths[i] + LENGTH_PREFIX
    while slot < run.count and lengths[slot] and run.first + slot < upper:
        hit.span_bytes += <uint64_t> lengths[slot] + LENGTH_PREFIX
        hit.span_entries += 1
        slot += 1
    hit.span_last = run.first + slot - 1


cdef bint pending_seek(Pending* pending, int64_t ledger, int64_t entry, IndexHit* hit) noexcept nogil:
    cdef PendingShard* shard = &pending.shards[ledger_shard(ledger)]
    cdef PendingBatch* batch
    cdef PendingBatch* found = NULL
    cdef uint32_t found_at = 0
    cdef uint32_t at = 0
    cdef int64_t least = INT64_MAX
    cdef int64_t upper = INT64_MAX
    cdef int64_t first
    if bk_load(&pending.runs) == 0 or bk_planted(PLANT_PENDING_UNREAD):
        return False
    pthread_mutex_lock(&shard.lock)
    batch = shard.earliest
    while batch != NULL:
        first = batch_next(batch, ledger, entry, &at)
        if first != INT64_MAX and first <= least:        # the latest of several copies
            found, found_at, least = batch, at, first
        batch = batch.later
    batch = shard.earliest if found != NULL else NULL
    while batch != NULL:
        if batch != found:
            upper = min(upper, batch_next(batch, ledger, least + 1, &at))
        batch = batch.later
    if found != NULL:
        describe_hit(found, found_at, least, upper, hit)
    pthread_mutex_unlock(&shard.lock)
    return found != NULL


cdef Status pending_each(Pending* pending, int64_t ledger, pending_fn each, void* context) noexcept nogil:
    cdef PendingShard* shard = &pending.shards[ledger_shard(ledger)]
    cdef PendingBatch* batch
    cdef IndexRun run
    cdef uint32_t at
    cdef Status status = OK
    if bk_load(&pending.runs) == 0:
        return OK
    pthread_mutex_lock(&shard.lock)
    batch = shard.earliest
    while batch != NULL:
        at = batch_find(batch, ledger)
        while status == OK and at < batch.count and batch.runs[at].ledger == ledger:
            batch_describe(batch, at, &run)
            if run.count:
                status = each(context, &run)
            at += 1
        batch = batch.later
    pthread_mutex_unlock(&shard.lock)
    return status


cdef Status raise_last(void* context, const IndexRun* run) noexcept nogil:
    cdef int64_t* last = <int64_t*> context
    last[0] = max(last[0], run.first + run.count - 1)
    return OK


cdef int64_t pending_last(Pending* pending, int64_t ledger) noexcept nogil:
    cdef int64_t last = -1
    pending_each(pending, ledger, raise_last, &last)
    return last
