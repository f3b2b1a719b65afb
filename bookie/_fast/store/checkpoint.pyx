"""Checkpoints: from the write cache to entry log and index, and only then the mark."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memset

from bookie._fast.base.by_ledger cimport Chained
from bookie._fast.base.crash_steps cimport step
from bookie._fast.base.cursor cimport load_u32
from bookie._fast.base.fatal cimport fatal_is_set, fatal_set
from bookie._fast.base.file cimport iovec
from bookie._fast.base.op_stats cimport op_note
from bookie._fast.base.planted cimport (
    PLANT_FAILED_HALF_LOST,
    PLANT_LAG_FORGOTTEN,
    PLANT_MARK_EARLY,
    PLANT_MARK_LATE,
    PLANT_MARK_WHEN_FULL,
    bk_planted,
)
from bookie._fast.base.sync cimport (
    bk_add,
    bk_add_relaxed,
    bk_exchange,
    bk_load,
    bk_store,
    cond_wait_until,
    now_ns,
    pthread_cond_broadcast,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)
from bookie._fast.base.types cimport CORRUPT, IO_ERROR, LENGTH_PREFIX, NO_MEMORY, NO_SPACE, OK
from bookie._fast.cache.pages cimport page_offset
from bookie._fast.cache.runs cimport LedgerRuns, Run, RunMap, RunPlace, map_find, map_remove, runs_next
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
    IndexRun,
    index_abort,
    index_begin,
    index_commit,
    index_put_run,
)
from bookie._fast.journal.files cimport journal_mark
from bookie._fast.store.carry_over cimport stores_carry_over, stores_hurry
from bookie._fast.store.changed_ledgers cimport ledgers_changed, ledgers_put, ledgers_settle
from bookie._fast.store.last_entry cimport learn_last_alone
from bookie._fast.store.last_mark cimport marks_trim, marks_write
from bookie._fast.store.ledger_table cimport Ledger, ledger_take_closed
from bookie._fast.store.spare_half cimport SPARE_TICK_US, spare_await, spare_clear, spares_take_back
from bookie._fast.store.storage cimport StorageEngine, stores_judge_space, stores_request_flush
from bookie._fast.store.stores cimport SHARDS, STORES_MOST, Shard, shard_of

cdef enum:
    PARTS_MOST = 512
    APPEND_BYTES_MOST = 8 << 20
    REST_NS = 1000000000
    GAP_MOST = 8             # more missing ids than this start a new stored run
    MARKS_A_LOOK = 64        # ledgers of a shard in one step, so that its lock is held for microseconds

cdef struct Indexing:
    # The stored run that is built from appended records.
    Store* store
    IndexRun run
    uint64_t end             # offset after the run's last record
    uint32_t lengths[RUN_SLOTS_MAX]

cdef struct Flushing:
    LedgerRuns** ledgers     # of the half, ascending by ledger id
    uint32_t count


cdef int by_ledger(const void* a, const void* b) noexcept nogil:
    cdef int64_t left = (<LedgerRuns**> a)[0].chained.ledger
    cdef int64_t right = (<LedgerRuns**> b)[0].chained.ledger
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
    cdef uint32_t i, b
    cdef uint32_t ledgers = 0
    cdef RunMap* map
    cdef Chained* at
    for i in range(SHARDS):
        ledgers += store.shards[i].halves[half].table.count
    flushing.ledgers = <LedgerRuns**> malloc((ledgers + 1) * sizeof(LedgerRuns*))
    if flushing.ledgers == NULL:
        return NO_MEMORY
    for i in range(SHARDS):
        map = &store.shards[i].halves[half]
        for b in range(map.table.size):
            at = map.table.buckets[b]
            while at != NULL:
                if (<LedgerRuns*> at).count:
                    flushing.ledgers[flushing.count] = <LedgerRuns*> at
                    flushing.count += 1
                at = at.next
    qsort(flushing.ledgers, flushing.count, sizeof(LedgerRuns*), by_ledger)
    return OK


cdef Status index_flush_run(Indexing* indexing) noexcept nogil:
    cdef Status status = OK
    if indexing.run.count:
        indexing.run.lengths = indexing.lengths
        status = index_put_run(indexing.store.index, &indexing.run)
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
    cdef uint32_t i
    cdef Shard* shard
    cdef LedgerRuns* cached
    for i in range(flushing.count):
        if not flushing.ledgers[i].overrides:
            continue
        bk_add(&store.overrides, 1)
        shard = shard_of(store, flushing.ledgers[i].chained.ledger)
        pthread_mutex_lock(&shard.lock)
        cached = map_find(&shard.cached, flushing.ledgers[i].chained.ledger)
        if cached != NULL:
            map_remove(&shard.cached, flushing.ledgers[i].chained.ledger)
        pthread_mutex_unlock(&shard.lock)
        learn_last_alone(store, flushing.ledgers[i].chained.ledger)


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


cdef void take_marks(Store* store) noexcept nogil:
    """Mark the logs of ledgers whose end was announced. This precedes the swap, so that all entries added before the
    announcement are in the half. Deletion marks ledgers too, with the same lock.
    """
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


cdef Status close_idle_logs(Store* store) noexcept nogil:
    """Run a checkpoint of a store that has nothing to flush."""
    cdef Status status
    pthread_mutex_lock(&store.writing)
    status = sync_logs(store)
    if status == OK:
        log_set_settle(store.log)
    elif status != IO_ERROR:
        log_set_give_up(store.log)
    pthread_mutex_unlock(&store.writing)
    return status


cdef Status or_end(Status status) noexcept nogil:
    """Set the fatal latch if a write or sync failed, so that nothing is acknowledged while the flush cleans up. Other
    failures (no space, no memory, an index that needs repair) have left nothing behind, and the flush is repeated.
    """
    if status == IO_ERROR:
        fatal_set("checkpoint: writing the entry log, the index or the mark failed", 0)
    return status


cdef Status write_out(Storage* stores, Store* store, Flushing* flushing, Indexing* indexing) noexcept nogil:
    """Append, sync the log, commit the index: three steps that must follow each other."""
    cdef uint32_t i
    cdef int64_t started = now_ns()
    cdef Status status = or_end(index_begin(store.index))
    if status != OK:
        return status
    for i in range(flushing.count):
        status = append_ledger(stores, store, flushing.ledgers[i], indexing)
        if status == OK:
            status = log_set_end_marked(store.log, flushing.ledgers[i].chained.ledger)
        if status != OK:
            break
    if status == OK:
        status = index_flush_run(indexing)
    if status == OK:
        step(STEP_APPENDED)
        status = sync_logs(store)
    or_end(status)
    op_note(&store.ops.entry_log[status == OK], now_ns() - started, 1)
    if status == OK:
        step(STEP_LOG_SYNCED)
        status = or_end(ledgers_put(store))
    if status != OK:
        index_abort(store.index)
        return status
    started = now_ns()
    status = or_end(index_commit(store.index))
    op_note(&store.ops.index[status == OK], now_ns() - started, 1)
    return status


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
    indexing.run.count = 0
    pthread_mutex_lock(&store.writing)
    status = collect(store, half, &flushing)
    if status == OK:
        status = write_out(stores, store, &flushing, indexing)
    if status == OK:
        step(STEP_INDEX_COMMITTED)
        ledgers_settle(store, True)
        log_set_settle(store.log)
        forget_overridden(store, &flushing)
        store.stats.flushed_entries += store.halves[half].entries
        bk_add_relaxed(&store.stats.index_entries, store.halves[half].entries)
        spare_clear(stores, store)
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
    free(flushing.ledgers)
    free(indexing)
    return status


cdef Status store_flush(Storage* stores, Store* store) noexcept nogil:
    cdef Status status
    cdef int64_t half, started
    if not bk_load(&store.spare_clean) and not bk_load(&store.spare_read):
        # The half of an earlier flush that failed goes first.
        status = flush_half(stores, store, bk_load(&store.active) ^ 1)
        if status != OK:
            return status
    take_marks(store)
    half = bk_load(&store.active)
    if bk_load(&store.halves[half].entries) == 0 and not ledgers_changed(store):
        return close_idle_logs(store)
    started = now_ns()
    if not spare_await(stores, store):
        return IO_ERROR
    op_note(&store.ops.readers, now_ns() - started, 1)
    swap(store)
    step(STEP_SWAPPED)
    return flush_half(stores, store, half)


cdef void take_places(Storage* stores, int64_t* ids, uint64_t* offsets) noexcept nogil:
    """Get the place up to which each journal is on disk, for the marks."""
    cdef uint32_t i
    for i in range(stores.journal_count):
        journal_mark(stores.journals[i], &ids[i], &offsets[i])
        if ids[i] == 0:
            ids[0] = 0           # a full disk keeps a journal from opening its first file: no mark moves


cdef Status store_checkpoint(Storage* stores, Store* store, const int64_t* ids, const uint64_t* offsets) noexcept nogil:
    """Flush one directory and write its mark. The mark covers this directory only, so it waits for no other."""
    cdef Status status = store_flush(stores, store)
    if status == OK and bk_load(&store.lagging) and not bk_planted(PLANT_LAG_FORGOTTEN):
        status = NO_SPACE        # the journals still have entries that this directory lacks
    bk_store(&store.no_space, status == NO_SPACE)
    if bk_planted(PLANT_MARK_LATE):
        take_places(stores, <int64_t*> ids, <uint64_t*> offsets)
    if status == NO_SPACE and bk_planted(PLANT_MARK_WHEN_FULL):
        status = OK
    return marks_write(stores, store, ids, offsets) if status == OK and ids[0] else status


cdef void note_late(Store* store, Status status) noexcept nogil:
    """Record a failed flush for metrics and log; a full disk has a log message of its own."""
    bk_add_relaxed(&store.stats.flushes_put_off, 1)
    if status != NO_SPACE:
        bk_store(&store.put_off_for, status)


cdef Status stores_checkpoint(Storage* stores) noexcept nogil:
    cdef int64_t ids[STORES_MOST]
    cdef uint64_t offsets[STORES_MOST]
    cdef uint32_t i
    cdef Status status
    cdef Status late = OK
    take_places(stores, ids, offsets)
    stores.generation += 1
    if bk_planted(PLANT_MARK_EARLY):
        for i in range(stores.count):
            marks_write(stores, stores.stores[i], ids, offsets)
    step(STEP_MARKED)
    for i in range(stores.count):
        status = store_checkpoint(stores, stores.stores[i], ids, offsets)
        if status == IO_ERROR:
            return status
        stores.stores[i].backlog.late = status != OK
        if status != OK:
            note_late(stores.stores[i], status)      # the other stores go on
            late = late if late == NO_SPACE else status
    step(STEP_MARK_WRITTEN)
    marks_trim(stores)
    step(STEP_TRIMMED)
    return late


cdef Status run_once(Storage* stores) noexcept nogil:
    """Run one checkpoint. On a full disk adds are refused; a failed flush is repeated; a failed write is fatal."""
    cdef Status status = stores_checkpoint(stores)
    bk_store(&stores.put_off, status != OK)
    if status == OK or status == NO_SPACE:
        bk_store(&stores.disk_full, status == NO_SPACE)
        stores_judge_space(stores)
    return or_end(status)


cdef void rest(Storage* stores) noexcept nogil:
    """Rest after a failed flush: adds that wait for room request another at once, which would fail the same way."""
    cdef int64_t deadline = now_ns() + REST_NS
    pthread_mutex_lock(&stores.flush_lock)
    while now_ns() < deadline and not stores.stopping:
        cond_wait_until(&stores.flush_wanted, &stores.flush_lock, deadline)
    pthread_mutex_unlock(&stores.flush_lock)


cdef bint may_catch_up(Storage* stores) noexcept nogil:
    """Return whether a directory with an unfinished replay has flushed what it took, so that there is room for more."""
    cdef uint32_t i
    for i in range(stores.count):
        if bk_load(&stores.stores[i].lagging) and (bk_load(&stores.stores[i].spare_clean)
                                                   or bk_load(&stores.stores[i].spare_read)):
            return True
    return False


cdef class Checkpointer:
    """The flush thread: it runs a checkpoint in each interval, and whenever one is requested."""

    def __init__(self, StorageEngine stores, *, interval_ms: int, marks=()):
        """`marks`: for each journal the (file id, offset, generation) of each store, as read at start."""
        self.stores_room = stores
        self.stores = stores.stores
        for journal, of_journal in enumerate(marks):
            for i, (file_id, _offset, generation) in enumerate(of_journal):
                self.stores.stores[i].backlog.marked[journal] = file_id
                self.stores.stores[i].backlog.marked_ns = now_ns()
                self.stores.generation = max(self.stores.generation, generation)
        self.interval_ns = interval_ms * 1000000

    def run(self) -> None:
        """Run checkpoints until `stop` or a fatal failure. The body of the flush thread."""
        cdef Storage* stores = self.stores
        cdef int64_t requests, deadline, tick, early
        cdef Status status
        with nogil:
            while not fatal_is_set():
                early = now_ns() + REST_NS
                deadline = now_ns() + self.interval_ns
                pthread_mutex_lock(&stores.flush_lock)
                while stores.flush_requests == stores.flush_served and not stores.stopping and now_ns() < deadline:
                    if now_ns() >= early and stores_hurry(stores):
                        break
                    tick = now_ns() + (REST_NS if spares_take_back(stores) else SPARE_TICK_US * 1000)
                    cond_wait_until(&stores.flush_wanted, &stores.flush_lock, tick if tick < deadline else deadline)
                requests = stores.flush_requests
                pthread_mutex_unlock(&stores.flush_lock)
                if stores.stopping:
                    break
                status = run_once(stores)
                or_end(stores_carry_over(stores))
                if may_catch_up(stores):
                    with gil:
                        if self.catch_up is not None and self.catch_up():
                            stores_request_flush(stores)         # marks can move and adds are accepted now
                pthread_mutex_lock(&stores.flush_lock)
                stores.flush_served = requests
                pthread_cond_broadcast(&stores.flush_done)
                pthread_mutex_unlock(&stores.flush_lock)
                if status != OK and status != NO_SPACE:
                    rest(stores)

    def checkpoint(self) -> bool:
        """Request a checkpoint of everything until now, wait for the flush thread to run it, and return its success."""
        cdef Storage* stores = self.stores
        cdef int64_t mine
        with nogil:
            stores_request_flush(stores)
            pthread_mutex_lock(&stores.flush_lock)
            mine = stores.flush_requests
            while stores.flush_served < mine and not stores.stopping and not fatal_is_set():
                cond_wait_until(&stores.flush_done, &stores.flush_lock, now_ns() + 100000000)
            pthread_mutex_unlock(&stores.flush_lock)
        return not fatal_is_set() and not bk_load(&stores.put_off)

    def take_put_off(self) -> list[tuple[int, str]]:
        """Return (directory number, reason) of failed flushes since the last call, except those for lack of space."""
        found = []
        for i in range(self.stores.count):
            status = bk_exchange(&self.stores.stores[i].put_off_for, OK)
            if status != OK:
                found.append((i, "no memory" if status == NO_MEMORY else "the location index is damaged"
                              if status == CORRUPT else f"status {status}"))
        return found

    def flush_stores(self) -> None:
        """Flush what replay restored; no mark moves, because there is no new journal yet. OSError on failure."""
        cdef Status status = OK
        cdef uint32_t i
        self._require_open()
        with nogil:
            for i in range(self.stores.count):
                if status == OK:
                    status = store_flush(self.stores, self.stores.stores[i])
        self._raise(status)

    def flush_alone(self) -> None:
        """Run a checkpoint in the calling thread: in recovery, and after the flush thread's end. OSError on failure."""
        cdef Status status
        self._require_open()
        with nogil:
            status = run_once(self.stores)
        self._raise(status)

    cdef _require_open(self):
        cdef uint32_t i
        for i in range(self.stores.count):
            if self.stores.stores[i].index == NULL:
                raise ValueError("the stores are closed")

    cdef _raise(self, Status status):
        if status == NO_SPACE:
            raise OSError(28, "no space left for the checkpoint; free disk space in the ledger directories")
        if status == CORRUPT:
            raise OSError(117, "the checkpoint cannot run while the damaged location index is being repaired")
        if status != OK:
            raise OSError(5, f"the checkpoint failed (status {<int> status}): entry log, index or mark was not written")

    def stop(self) -> None:
        cdef Storage* stores = self.stores
        with nogil:
            pthread_mutex_lock(&stores.flush_lock)
            stores.stopping = True
            pthread_cond_broadcast(&stores.flush_wanted)
            pthread_cond_broadcast(&stores.flush_done)
            pthread_mutex_unlock(&stores.flush_lock)
