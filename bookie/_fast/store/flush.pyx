"""From the write cache of one directory to its entry log and index."""
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memset

from bookie._fast.base.by_ledger cimport LEDGER_SHARDS
from bookie._fast.base.crash_steps cimport (
    STEP_APPENDED,
    STEP_CLEARED,
    STEP_INDEX_COMMITTED,
    STEP_LOG_SYNCED,
    STEP_SWAPPED,
    step,
)
from bookie._fast.base.cursor cimport load_u32
from bookie._fast.base.fatal cimport fatal_set
from bookie._fast.base.file cimport iovec
from bookie._fast.base.op_stats cimport op_note
from bookie._fast.base.planted cimport PLANT_FAILED_HALF_LOST, bk_planted
from bookie._fast.base.slabs cimport Slab, Slabs, slab_item
from bookie._fast.base.sync cimport (
    bk_add,
    bk_add_relaxed,
    bk_load,
    bk_store,
    now_ns,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)
from bookie._fast.base.types cimport IO_ERROR, LENGTH_PREFIX, NO_MEMORY, OK
from bookie._fast.cache.pages cimport page_offset
from bookie._fast.cache.runs cimport LedgerRuns, Run, RunPlace, map_find, map_remove, runs_next
from bookie._fast.cache.write cimport half_taken
from bookie._fast.entrylog.set cimport (
    log_set_append,
    log_set_end_all_marked,
    log_set_end_marked,
    log_set_expire,
    log_set_give_up,
    log_set_hurry,
    log_set_mark,
    log_set_settle,
    log_set_sync,
)
from bookie._fast.index.location cimport (
    RUN_SLOTS_MAX,
    IndexReader,
    IndexRun,
    index_abort,
    index_begin,
    index_reader,
    index_reader_free,
)
from bookie._fast.store.changed_ledgers cimport ledgers_changed, ledgers_settle
from bookie._fast.store.index_slices cimport (
    Staged,
    put_flushed,
    put_pending,
    slice_of,
    stage_run,
    staged_free,
    too_many_wait,
)
from bookie._fast.store.kept_halves cimport kept_renew, kept_trim
from bookie._fast.store.last_entry cimport learn_last
from bookie._fast.store.ledger_table cimport Ledger, ledger_take_closed
from bookie._fast.store.spare_half cimport spare_await, spare_clear, spare_leave
from bookie._fast.store.stores cimport SHARDS, Shard, shard_of

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void*) noexcept nogil

cdef enum:
    PARTS_MOST = 512
    AHEAD = 4                # ledgers between two steps of a prefetch
    APPEND_BYTES_MOST = 8 << 20
    GAP_MOST = 8             # more missing ids than this start a new stored run
    MARKS_A_LOOK = 64        # ledgers of a shard in one step, so that its lock is held for microseconds

cdef struct Indexing:
    # The stored run that is built from appended records, and those before it.
    Store* store
    Staged staged
    IndexRun run
    uint64_t end             # offset after the run's last record
    uint32_t lengths[RUN_SLOTS_MAX]

cdef struct Flushed:
    int64_t ledger
    LedgerRuns* runs

cdef struct Flushing:
    Flushed* ledgers         # of the half, ascending by ledger id
    uint32_t count


cdef int by_ledger(const void* a, const void* b) noexcept nogil:
    cdef int64_t left = (<const Flushed*> a).ledger
    cdef int64_t right = (<const Flushed*> b).ledger
    return -1 if left < right else (1 if left > right else 0)


cdef void swap(Store* store) noexcept nogil:
    """Let the empty half take adds. They read `active` with their shard's lock, so taking all locks is the barrier."""
    cdef uint32_t i
    bk_store(&store.spare_clean, 0)
    bk_store(&store.active, store.active ^ 1)
    for i in range(SHARDS):
        pthread_mutex_lock(&store.shards[i].lock)
        pthread_mutex_unlock(&store.shards[i].lock)


cdef Status collect(Store* store, int64_t half, Flushing* flushing) noexcept nogil:
    """List the half's ledgers in order. Nothing changes the half any more."""
    cdef uint32_t i, j
    cdef uint32_t ledgers = 0
    cdef const Slabs* slabs
    cdef Slab* slab
    cdef LedgerRuns* runs
    for i in range(SHARDS):
        ledgers += store.shards[i].halves[half].table.count
    flushing.ledgers = <Flushed*> malloc((ledgers + 1) * sizeof(Flushed))
    if flushing.ledgers == NULL:
        return NO_MEMORY
    for i in range(SHARDS):
        slabs = &store.shards[i].halves[half].slabs
        slab = slabs.newest
        while slab != NULL:
            for j in range(slab.taken):
                runs = <LedgerRuns*> slab_item(slabs, slab, j)
                if runs.count:               # else it was removed
                    flushing.ledgers[flushing.count] = Flushed(runs.chained.ledger, runs)
                    flushing.count += 1
            slab = slab.older
    qsort(flushing.ledgers, flushing.count, sizeof(Flushed), by_ledger)
    return OK


cdef Status index_flush_run(Indexing* indexing) noexcept nogil:
    cdef Status status = OK
    if indexing.run.count:
        indexing.run.lengths = indexing.lengths
        status = stage_run(indexing.store, &indexing.staged, &indexing.run)
        indexing.run.count = 0
    return status


cdef Status index_record(Indexing* indexing, int64_t ledger, int64_t entry, uint32_t length, uint32_t log_id,
                         uint64_t offset) noexcept nogil:
    """Add an appended record to the open run, or begin the next one with it."""
    cdef IndexRun* run = &indexing.run
    cdef int64_t slot = entry - run.first
    cdef Status status
    if (run.count == 0 or run.ledger != ledger or run.log_id != log_id or indexing.end != offset
            or slot >= RUN_SLOTS_MAX or slot > <int64_t> run.count + GAP_MOST):
        status = index_flush_run(indexing)
        if status != OK:
            return status
        run.ledger = ledger
        run.first = entry
        run.log_id = log_id
        run.offset = offset
        slot = 0
    while <int64_t> run.count < slot:
        indexing.lengths[run.count] = 0
        run.count += 1
    indexing.lengths[slot] = length
    run.count = <uint32_t> slot + 1
    indexing.end = offset + LENGTH_PREFIX + length
    return OK


cdef Status index_view(Indexing* indexing, const Run* run, uint32_t log_id, uint64_t offset) noexcept nogil:
    """Add the records of one run that was appended at `offset`."""
    cdef uint32_t slot, at, length
    cdef uint32_t start = page_offset(run.page, run.lo)
    cdef int64_t entry = run.first
    cdef bint dense = run.last - run.first == <int64_t> run.n - 1
    cdef uint8_t* record
    cdef Status status
    for slot in range(run.lo, run.lo + run.n):
        at = page_offset(run.page, slot)
        record = run.page.data + at
        length = load_u32(record)
        if not dense:
            entry = <int64_t> entry_of(record)
        status = index_record(indexing, run.page.ledger, entry, length, log_id, offset + at - start)
        if status != OK:
            return status
        entry += 1
    return OK


cdef inline uint64_t entry_of(const uint8_t* record) noexcept nogil:
    return (<uint64_t> load_u32(record + LENGTH_PREFIX + 8) << 32) | load_u32(record + LENGTH_PREFIX + 12)


cdef inline bint behind(Storage* stores, Store* store) noexcept nogil:
    """Return whether the half that takes adds is filling up before this flush has ended."""
    return half_taken(&store.halves[bk_load(&store.active)]) > stores.flush_bytes // 2


cdef Status append_ledger(Storage* stores, Store* store, LedgerRuns* ledger, Indexing* indexing) noexcept nogil:
    """Append a ledger's runs in large gathers, and index where each record went."""
    cdef iovec parts[PARTS_MOST]
    cdef Run* runs[PARTS_MOST]
    cdef RunPlace place = RunPlace(0, 0)
    cdef Run* run = runs_next(ledger, &place)
    cdef uint32_t count, i, begin, end, log_id
    cdef uint64_t size, offset
    cdef Status status
    while run != NULL:
        size = 0
        count = 0
        while run != NULL and count < PARTS_MOST and (size == 0 or size < APPEND_BYTES_MOST):
            begin = page_offset(run.page, run.lo)
            end = page_offset(run.page, run.lo + run.n)
            parts[count].iov_base = run.page.data + begin
            parts[count].iov_len = end - begin
            runs[count] = run
            size += end - begin
            count += 1
            run = runs_next(ledger, &place)
        log_set_hurry(store.log, behind(stores, store))
        status = log_set_append(store.log, ledger.chained.ledger, parts, <int> count, size, &log_id, &offset)
        if status != OK:
            return status
        for i in range(count):
            status = index_view(indexing, runs[i], log_id, offset)
            if status != OK:
                return status
            offset += parts[i].iov_len
        store.stats.flushed_bytes += size
    return OK


cdef void forget_overridden(Store* store, const Flushing* flushing) noexcept nogil:
    """Drop cached reads of ledgers whose older entries were overwritten, since they may be stale. A ledger whose last
    entry this process had not looked up counts as overwritten once.
    """
    cdef IndexReader* reader = NULL
    cdef uint32_t i
    cdef Shard* shard
    cdef LedgerRuns* cached
    for i in range(flushing.count):
        if not flushing.ledgers[i].runs.overrides:
            continue
        bk_add(&store.overrides, 1)
        shard = shard_of(store, flushing.ledgers[i].ledger)
        pthread_mutex_lock(&shard.lock)
        cached = map_find(&shard.cached, flushing.ledgers[i].ledger)
        if cached != NULL:
            map_remove(&shard.cached, flushing.ledgers[i].ledger)
        pthread_mutex_unlock(&shard.lock)
        if reader == NULL:
            reader = index_reader(store.index)
        if reader != NULL:
            learn_last(store, reader, flushing.ledgers[i].ledger)
    if reader != NULL:
        index_reader_free(reader)


cdef uint32_t take_closed(Shard* shard, int64_t* ids) noexcept nogil:
    """Take a few ledgers of a shard whose end was announced; fewer than MARKS_A_LOOK are the last ones."""
    cdef uint32_t count = 0
    cdef Ledger* ledger = NULL
    pthread_mutex_lock(&shard.lock)
    while count < MARKS_A_LOOK:
        ledger = ledger_take_closed(&shard.ledgers)
        if ledger == NULL:
            break
        ids[count] = ledger.chained.ledger
        count += 1
    pthread_mutex_unlock(&shard.lock)
    return count


cdef void store_take_marks(Store* store) noexcept nogil:
    cdef int64_t ids[MARKS_A_LOOK]
    cdef uint32_t i, j
    cdef uint32_t count
    pthread_mutex_lock(&store.writing)
    for i in range(SHARDS):
        count = MARKS_A_LOOK
        while count == MARKS_A_LOOK:
            count = take_closed(&store.shards[i], ids)
            for j in range(count):
                log_set_mark(store.log, ids[j])
    pthread_mutex_unlock(&store.writing)


cdef Status sync_logs(Store* store) noexcept nogil:
    """Close the logs that need not stay open, and sync all."""
    cdef Status status = log_set_end_all_marked(store.log)
    if status == OK:
        status = log_set_expire(store.log, now_ns())
    return log_set_sync(store.log) if status == OK else status


cdef void settle_logs(Store* store) noexcept nogil:
    """Count what was appended as flushed. A log may be collected when no run that points into it is pending."""
    cdef int64_t reached = store.turn.shards_put
    if bk_load(&store.index.pending.runs) == 0:
        log_set_settle(store.log, 0, INT64_MAX)
    else:
        log_set_settle(store.log, reached + LEDGER_SHARDS, reached)


cdef Status close_idle_logs(Store* store) noexcept nogil:
    """Run a checkpoint of a store that has nothing to flush."""
    cdef Status status
    pthread_mutex_lock(&store.writing)
    status = sync_logs(store)
    if status == OK:
        settle_logs(store)
    elif status != IO_ERROR:
        log_set_give_up(store.log)
    pthread_mutex_unlock(&store.writing)
    return status


cdef Status or_end(Status status) noexcept nogil:
    if status == IO_ERROR:
        fatal_set("checkpoint: writing the entry log, the index or the mark failed", 0)
    return status


cdef inline void fetch_ahead(const Flushing* flushing, uint32_t i) noexcept nogil:
    """Fetch what ledgers after `i` need into the CPU's cache: in order of their ids, their pages lie anywhere."""
    cdef const LedgerRuns* runs
    if i + 3 * AHEAD < flushing.count:
        prefetch(flushing.ledgers[i + 3 * AHEAD].runs)
        prefetch(&flushing.ledgers[i + 3 * AHEAD].runs.runs_own)
    if i + 2 * AHEAD < flushing.count:
        prefetch(flushing.ledgers[i + 2 * AHEAD].runs.runs_own[0].page)
    if i + AHEAD < flushing.count:
        runs = flushing.ledgers[i + AHEAD].runs
        if runs.chunks[0].runs == runs.runs_own:
            prefetch(runs.runs_own[0].page.data)
            prefetch(runs.runs_own[0].page.data + runs.runs_own[0].page.capacity - 4)


cdef Status append_all(Storage* stores, Store* store, Flushing* flushing, Indexing* indexing) noexcept nogil:
    """Append the half to the entry log, and sync it."""
    cdef uint32_t i
    cdef int64_t started = now_ns()
    cdef Status status = OK
    for i in range(flushing.count):
        fetch_ahead(flushing, i)
        status = append_ledger(stores, store, flushing.ledgers[i].runs, indexing)
        if status == OK:
            status = log_set_end_marked(store.log, flushing.ledgers[i].ledger)
        if status != OK:
            break
    if status == OK:
        status = index_flush_run(indexing)
    if status == OK:
        step(STEP_APPENDED)
        status = sync_logs(store)
    op_note(&store.ops.entry_log[status == OK], now_ns() - started, 1)
    return or_end(status)


cdef Status write_out(Storage* stores, Store* store, Flushing* flushing, Indexing* indexing) noexcept nogil:
    """Append, sync the log, commit the index: three steps that must follow each other."""
    cdef uint64_t before = store.stats.flushed_bytes
    cdef Status status = or_end(index_begin(store.index))        # fails if the index has to be repaired first
    if status != OK:
        return status
    status = append_all(stores, store, flushing, indexing)
    if status != OK:
        index_abort(store.index)
        return status
    step(STEP_LOG_SYNCED)
    store.turn.slice = slice_of(store, &indexing.staged, store.stats.flushed_bytes - before)
    return or_end(put_flushed(store, &indexing.staged, store.turn.slice))


cdef Status flush_half(Storage* stores, Store* store, int64_t half) noexcept nogil:
    """Write an inactive half to disk and index; after a failure it stays as it is, to be flushed again."""
    cdef int64_t started = now_ns()
    cdef int64_t before = store.stats.flushed_bytes
    cdef Flushing flushing
    cdef Indexing* indexing = <Indexing*> malloc(sizeof(Indexing))
    cdef Status status = NO_MEMORY
    if indexing == NULL:
        return NO_MEMORY
    memset(&flushing, 0, sizeof(Flushing))
    indexing.store = store
    memset(&indexing.staged, 0, sizeof(Staged))
    indexing.run.count = 0
    pthread_mutex_lock(&store.writing)
    status = collect(store, half, &flushing)
    if status == OK:
        status = write_out(stores, store, &flushing, indexing)
    if status == OK:
        step(STEP_INDEX_COMMITTED)
        ledgers_settle(store, True)
        settle_logs(store)
        forget_overridden(store, &flushing)
        store.stats.flushed_entries += store.halves[half].entries
        bk_add_relaxed(&store.stats.index_entries, store.halves[half].entries)
        spare_leave(stores, store)
        step(STEP_CLEARED)
        store.stats.flushes += 1
        op_note(&store.ops.size[1], store.stats.flushed_bytes - before, 1)
    else:
        ledgers_settle(store, False)
        if status != IO_ERROR:
            log_set_give_up(store.log)       # the next attempt begins other logs
        if bk_planted(PLANT_FAILED_HALF_LOST):
            spare_clear(stores, store)
    op_note(&store.ops.flush[status == OK], now_ns() - started, 1)
    pthread_mutex_unlock(&store.writing)
    staged_free(&indexing.staged)
    free(flushing.ledgers)
    free(indexing)
    return status


cdef Status store_flush_spare(Storage* stores, Store* store) noexcept nogil:
    if bk_load(&store.spare_clean) or bk_load(&store.spare_read):
        return OK
    return flush_half(stores, store, bk_load(&store.active) ^ 1)


cdef Status store_swap(Storage* stores, Store* store) noexcept nogil:
    cdef int64_t started = now_ns()
    if not spare_await(stores, store) or not kept_renew(stores, store):
        return IO_ERROR
    op_note(&store.ops.readers, now_ns() - started, 1)
    swap(store)
    bk_store(&store.job.room_wanted, 0)
    step(STEP_SWAPPED)
    return OK if kept_trim(stores, store) else IO_ERROR      # more adds may have come until the swap


cdef Status put_next(Store* store, uint32_t shards) noexcept nogil:
    """Put the runs of so many shards that wait for the index, or as many as one transaction should."""
    cdef Status status
    pthread_mutex_lock(&store.writing)
    status = or_end(put_pending(store, shards))
    if status == OK:
        settle_logs(store)
    pthread_mutex_unlock(&store.writing)
    return status


cdef Status store_flush_spare_whole(Storage* stores, Store* store) noexcept nogil:
    cdef Status status = store_flush_spare(stores, store)
    while status == OK and bk_load(&store.index.pending.runs):
        status = put_next(store, LEDGER_SHARDS)
    return status


cdef Status put_until(Storage* stores, Store* store, int64_t shards_put, uint32_t shards) noexcept nogil:
    """Put pending runs, at most of `shards` at a time, until `shards_put` have been put and memory is not short. Adds
    need not wait for the end of it: a half that is full meanwhile is flushed in between.
    """
    cdef Status status = OK
    while status == OK and bk_load(&store.index.pending.runs):
        if too_many_wait(store):
            status = put_next(store, shards)
        elif store.turn.shards_put >= shards_put:
            break
        elif bk_load(&store.job.room_wanted) and bk_load(&store.spare_clean):
            status = store_swap(stores, store)
            if status == OK:
                status = store_flush_spare(stores, store)
        else:
            status = put_next(store, shards)
    return status


cdef Status flush(Storage* stores, Store* store, bint whole) noexcept nogil:
    cdef int64_t before
    cdef uint32_t shards
    cdef Status status = store_flush_spare(stores, store)    # the half of an earlier flush that failed goes first
    if status != OK:
        return status
    store_take_marks(store)
    before = store.turn.shards_put
    if bk_load(&store.halves[bk_load(&store.active)].entries) == 0 and not ledgers_changed(store):
        status = close_idle_logs(store)
    else:
        status = store_swap(stores, store)
        if status == OK:
            status = store_flush_spare(stores, store)
    if status != OK:
        return status
    shards = LEDGER_SHARDS if whole else store.turn.slice
    return put_until(stores, store, before + shards, shards)


cdef Status store_flush(Storage* stores, Store* store) noexcept nogil:
    return flush(stores, store, True)


cdef Status store_flush_for_room(Storage* stores, Store* store) noexcept nogil:
    return flush(stores, store, False)
