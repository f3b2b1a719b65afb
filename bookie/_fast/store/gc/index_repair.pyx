"""Both halves of a repair, and the class through which the repairing thread drives them."""
import errno
import os

from libc.errno cimport ENOMEM
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memcpy, memset

from bookie._fast.base.bounds cimport STORED_KEY_MAX, STORED_LAC_MAX
from bookie._fast.base.by_ledger cimport ByLedger, Chained, ascending_ids
from bookie._fast.base.crash_steps cimport (
    STEP_FOUND_COMMITTED,
    STEP_INDEX_RENAMED,
    STEP_INDEX_REPLACED,
    STEP_RENAME_SYNCED,
    STEP_SALVAGED,
    step,
)
from bookie._fast.base.fatal cimport fatal_set
from bookie._fast.base.file cimport sync_dir
from bookie._fast.base.sync cimport bk_add, bk_load, now_ns, pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.base.types cimport FULL, IO_ERROR, NO_ENTRY, NO_MEMORY, NO_SPACE, OK
from bookie._fast.entrylog.ids cimport log_ids_committed, log_ids_is_open
from bookie._fast.index.codec cimport RUN_SLOTS_MAX, IndexRun, LedgerRecord
from bookie._fast.index.damage cimport damage_begin_repair, damage_note, damage_stop, damage_take, damage_wait
from bookie._fast.index.doubts cimport doubts_add, doubts_drop, doubts_hold, doubts_lasting, doubts_list
from bookie._fast.index.guard cimport TABLE_LOCATIONS
from bookie._fast.index.ledger_tables cimport index_delete_doubt, index_put_doubt, index_put_fence, index_put_ledger
from bookie._fast.index.location cimport (
    IndexReader,
    index_abort,
    index_begin,
    index_close,
    index_commit,
    index_open,
    index_put_run,
    index_reader,
    index_reader_free,
    index_replace,
    index_run_at,
    index_written_run,
)
from bookie._fast.index.salvage cimport (
    Salvage,
    salvage_free,
    salvage_init,
    salvage_lost_of,
    salvage_nothing,
    salvage_runs,
)
from bookie._fast.index.view cimport Index
from bookie._fast.store.gc.compaction cimport points_into
from bookie._fast.store.gc.liveness cimport ledger_is_known
from bookie._fast.store.ledger_counts cimport FENCES_CLOCK
from bookie._fast.store.ledger_table cimport KeptFence, Ledger, ledger_find, ledger_kept_fence
from bookie._fast.store.storage cimport DirectoryStore, StorageEngine, stores_request_flush
from bookie._fast.store.stores cimport SHARDS, Shard, shard_of

cdef enum:
    BUCKETS_A_LOOK = 256         # of a shard's table per step, so that its lock is held for microseconds
    PUTS_A_COMMIT = 20000
    PATH_BYTES = 4200


# --- ids ---

cdef inline const ByLedger* table_of(Shard* shard, bint fences) noexcept nogil:
    return &shard.ledgers.fences if fences else &shard.ledgers.table


cdef bint look(Shard* shard, bint fences, uint32_t begin, uint32_t* size, int64_t* ids, size_t room,
               size_t* count) noexcept nogil:
    """Collect the ids in a few buckets from `begin` on. Return False if there is no room."""
    cdef const ByLedger* table
    cdef Chained* at
    cdef uint32_t i
    cdef bint fits = True
    pthread_mutex_lock(&shard.lock)
    table = table_of(shard, fences)
    size[0] = table.size
    for i in range(begin, min(begin + BUCKETS_A_LOOK, table.size)):
        at = table.buckets[i]
        while at != NULL and fits:
            fits = count[0] < room
            if fits:
                ids[count[0]] = at.ledger
                count[0] += 1
            at = at.next
    pthread_mutex_unlock(&shard.lock)
    return fits


cdef bint look_all(Store* store, bint fences, int64_t* ids, size_t room, size_t* count) noexcept nogil:
    """Collect all ids that existed when this began; a table that grew meanwhile is read again from the start."""
    cdef uint32_t i, begin, size, first_size
    cdef size_t before
    count[0] = 0
    for i in range(SHARDS):
        before = count[0]
        begin = first_size = 0
        while True:
            if not look(&store.shards[i], fences, begin, &size, ids, room, count):
                return False
            if begin and size != first_size:
                count[0] = before
                begin = 0
                continue
            first_size = size
            begin += BUCKETS_A_LOOK
            if begin >= size:
                break
    return True


cdef int64_t* sorted_ids(Store* store, bint fences, size_t* count) noexcept nogil:
    """Return the ids of all ledgers or kept fences, ascending; the caller frees them. NULL without memory."""
    cdef int64_t* ids
    cdef size_t room = 1024
    cdef uint32_t i
    for i in range(SHARDS):
        room += 2 * <size_t> table_of(&store.shards[i], fences).count
    while True:
        ids = <int64_t*> malloc(room * sizeof(int64_t))
        if ids == NULL:
            return NULL
        if look_all(store, fences, ids, room, count):
            break
        free(ids)
        room *= 2
    qsort(ids, count[0], sizeof(int64_t), ascending_ids)
    return ids


# --- the first half ---

cdef Status commit_some(LocationIndex* fresh, uint64_t put) noexcept nogil:
    """Begin a new transaction after a number of puts; the new index is not used before the last one."""
    cdef Status status
    if put == 0 or put % PUTS_A_COMMIT:
        return OK
    status = index_commit(fresh)
    return index_begin(fresh) if status == OK else status


cdef bint copy_record(Store* store, int64_t id, LedgerRecord* record, uint8_t* scratch) noexcept nogil:
    """Copy a ledger's record from memory, its bytes to `scratch`. Return False if the ledger does not exist."""
    cdef Shard* shard = shard_of(store, id)
    cdef Ledger* ledger
    pthread_mutex_lock(&shard.lock)
    ledger = ledger_find(&shard.ledgers, id)
    if ledger != NULL:
        record.ledger = id
        record.fenced = ledger.fenced
        record.limbo = ledger.limbo
        record.quarantine = ledger.quarantine
        record.key_size = min(ledger.key_size, <uint32_t> STORED_KEY_MAX)
        record.lac_size = min(ledger.explicit_lac_size, <uint32_t> STORED_LAC_MAX)
        memcpy(scratch, ledger.key, record.key_size)
        if record.lac_size:
            memcpy(scratch + record.key_size, ledger.explicit_lac, record.lac_size)
        record.key = scratch
        record.lac = scratch + record.key_size
    pthread_mutex_unlock(&shard.lock)
    return ledger != NULL


cdef Status put_ledgers(Store* store, LocationIndex* fresh, const Salvage* salvage, Repaired* repaired) noexcept nogil:
    """Put all ledger records, and a doubt for each ledger that may have lost runs now."""
    cdef LedgerRecord record
    cdef size_t count = 0, i
    cdef int64_t* ids = sorted_ids(store, False, &count)
    cdef uint8_t* scratch = <uint8_t*> malloc(STORED_KEY_MAX + STORED_LAC_MAX)
    cdef Status status = OK if ids != NULL and scratch != NULL else NO_MEMORY
    for i in range(count):
        if status != OK or not copy_record(store, ids[i], &record, scratch):
            continue
        status = commit_some(fresh, i)
        if status == OK:
            status = index_put_ledger(fresh, &record)
        repaired.ledgers += 1
        if status == OK and salvage_lost_of(salvage, ids[i]):
            status = index_put_doubt(fresh, ids[i], False)
            repaired.doubtful += 1
    free(ids)
    free(scratch)
    return status


cdef Status put_fences(Store* store, LocationIndex* fresh) noexcept nogil:
    cdef Shard* shard
    cdef KeptFence* fence
    cdef int64_t deleted_ms
    cdef size_t count = 0, i
    cdef int64_t* ids = sorted_ids(store, True, &count)
    cdef Status status = OK if ids != NULL else NO_MEMORY
    for i in range(count):
        shard = shard_of(store, ids[i])
        pthread_mutex_lock(&shard.lock)
        fence = ledger_kept_fence(&shard.ledgers, ids[i])
        deleted_ms = fence.since_ms if fence != NULL else 0
        pthread_mutex_unlock(&shard.lock)
        if fence != NULL and status == OK:
            status = commit_some(fresh, i)
        if fence != NULL and status == OK:
            status = index_put_fence(fresh, ids[i], deleted_ms)
    if status == OK:
        status = index_put_fence(fresh, FENCES_CLOCK, store.ledgers.fences_stored_ms)
    free(ids)
    return status


cdef Status put_earlier_doubts(Store* store, LocationIndex* fresh, const Salvage* salvage,
                               Repaired* repaired) noexcept nogil:
    """Put the earlier doubts of ledgers that lost nothing this time; the other ledgers are searched for again."""
    cdef int64_t* ids = NULL
    cdef size_t i, count = 0
    cdef Status status = OK
    if bk_load(&store.index.doubts.count) == 0:
        return OK
    ids = sorted_ids(store, False, &count)
    if ids == NULL:
        return NO_MEMORY
    for i in range(count):
        if status == OK and not salvage_lost_of(salvage, ids[i]) and doubts_hold(&store.index.doubts, ids[i]):
            status = index_put_doubt(fresh, ids[i], doubts_lasting(&store.index.doubts, ids[i]))
            repaired.doubtful += 1
    free(ids)
    return status


cdef Status fill(Store* store, LocationIndex* fresh, Salvage* salvage, Repaired* repaired) noexcept nogil:
    """Write and commit everything that the new index begins with."""
    cdef LocationIndex* index = store.index
    cdef Status status = index_begin(fresh)
    if status == OK:
        if index.guard.roots_known:
            status = salvage_runs(salvage, &index.guard.file, &index.guard.tables[TABLE_LOCATIONS],
                                  &index.guard.meta.free)
        else:
            status = salvage_nothing(salvage)
    repaired.runs = salvage.runs
    repaired.lost = salvage.lost_values
    if status == OK:
        status = put_ledgers(store, fresh, salvage, repaired)
    if status == OK:
        status = put_fences(store, fresh)
    if status == OK:
        status = put_earlier_doubts(store, fresh, salvage, repaired)
    if status == OK:
        status = index_commit(fresh)
    else:
        index_abort(fresh)
    return status


cdef Status doubt_in_memory(Store* store, const Salvage* salvage) noexcept nogil:
    """Put ledgers that lost runs in doubt, before the new index is used for reads."""
    cdef size_t count = 0, i
    cdef int64_t* ids
    cdef Status status = OK
    if salvage.lost_count == 0:
        return OK
    ids = sorted_ids(store, False, &count)
    if ids == NULL:
        return NO_MEMORY
    for i in range(count):
        if salvage_lost_of(salvage, ids[i]) and not doubts_add(&store.index.doubts, ids[i], False):
            status = NO_MEMORY
    free(ids)
    return status


cdef Status rename_index(FileOps* ops, const char* old, const char* new_) noexcept nogil:
    """Give the new files the old names. A failure before the first rename changes nothing."""
    cdef char source[PATH_BYTES]
    cdef char target[PATH_BYTES]
    if sync_dir(ops, new_) < 0:
        return NO_SPACE
    snprintf(source, PATH_BYTES, "%s/data.mdb", new_)
    snprintf(target, PATH_BYTES, "%s/data.mdb", old)
    if ops.rename(source, target) < 0:
        return NO_SPACE
    step(STEP_INDEX_RENAMED)
    snprintf(source, PATH_BYTES, "%s/lock.mdb", new_)
    snprintf(target, PATH_BYTES, "%s/lock.mdb", old)
    ops.rename(source, target)   # LMDB creates a missing lock file
    if sync_dir(ops, old) < 0:
        fatal_set("index repair: syncing the directory of the index failed", 0)
        return IO_ERROR
    step(STEP_RENAME_SYNCED)
    return OK


cdef Status index_salvage(Store* store, FileOps* ops, const char* old, const char* new_, uint64_t map_bytes,
                          Repaired* repaired) noexcept nogil:
    cdef Salvage salvage
    cdef LocationIndex* fresh
    cdef int error = 0
    cdef Status status
    memset(repaired, 0, sizeof(Repaired))
    pthread_mutex_lock(&store.writing)
    damage_begin_repair(&store.index.damage)
    fresh = index_open(new_, map_bytes, &error)
    if fresh == NULL:
        pthread_mutex_unlock(&store.writing)
        return NO_MEMORY if error == ENOMEM else NO_SPACE
    salvage_init(&salvage, fresh)
    status = fill(store, fresh, &salvage, repaired)
    if status == OK:
        step(STEP_SALVAGED)
        status = doubt_in_memory(store, &salvage)
    if status == OK:
        status = rename_index(ops, old, new_)
    if status == OK:
        index_replace(store.index, fresh)
        bk_add(&store.index.damage.repairs, 1)
        step(STEP_INDEX_REPLACED)
    else:
        index_close(fresh)
    salvage_free(&salvage)
    pthread_mutex_unlock(&store.writing)
    return status


# --- the second half ---

cdef struct Kept:
    # A stored run that takes precedence over a found one.
    IndexRun run
    uint32_t[RUN_SLOTS_MAX] lengths


cdef Status keep_stored(LocationIndex* index, const IndexRun* found, Kept** kept, uint32_t* count) noexcept nogil:
    """Copy the stored runs that overlap `found`; the caller frees them."""
    cdef int64_t entry = found.first
    cdef Kept* each
    cdef IndexRun run
    cdef Status status = OK
    count[0] = 0
    kept[0] = NULL
    while entry < found.first + found.count:
        status = index_written_run(index, found.ledger, entry, &run)
        if status != OK or run.first >= found.first + found.count:
            break
        if kept[0] == NULL:
            kept[0] = <Kept*> malloc((RUN_SLOTS_MAX + 1) * sizeof(Kept))
        if kept[0] == NULL:
            return NO_MEMORY
        each = &kept[0][count[0]]
        each.run = run
        memcpy(each.lengths, run.lengths, run.count * sizeof(uint32_t))
        each.run.lengths = each.lengths
        count[0] += 1
        entry = run.first + run.count
    return OK if status == NO_ENTRY else status


cdef Status put_found(LocationIndex* index, const IndexRun* found) noexcept nogil:
    """Put a found run, and then the stored runs that it overlaps again, which survived or were flushed since."""
    cdef Kept* kept = NULL
    cdef uint32_t count = 0, i
    cdef Status status = keep_stored(index, found, &kept, &count)
    if status == OK:
        status = index_put_run(index, found)
    for i in range(count):
        if status == OK:
            status = index_put_run(index, &kept[i].run)
    free(kept)
    return status


cdef Status take_ledger(Store* store, IndexReader* reader, int64_t ledger, int64_t* from_entry,
                        uint32_t* put) noexcept nogil:
    """Put the runs of one ledger from an entry on. FULL: enough for one transaction, there may be more."""
    cdef IndexRun run
    cdef Status status
    if not ledger_is_known(store, ledger):
        return OK                # it was deleted meanwhile
    while put[0] < PUTS_A_COMMIT:
        status = index_run_at(reader, ledger, from_entry[0], &run)
        if status != OK:
            return OK if status == NO_ENTRY else status
        from_entry[0] = run.first + run.count
        put[0] += 1
        status = put_found(store.index, &run)
        if status != OK:
            return status
    return FULL


cdef Status take_some(Store* store, IndexReader* reader, const int64_t* ids, const uint8_t* lasting, size_t count,
                      size_t* done, int64_t* from_entry) noexcept nogil:
    """Run one transaction of the second half."""
    cdef uint32_t put = 0
    cdef Status status = index_begin(store.index)
    if status != OK:
        return status
    done[0] = 0
    while status == OK and done[0] < min(count, <size_t> PUTS_A_COMMIT):
        if doubts_hold(&store.index.doubts, ids[done[0]]):
            status = take_ledger(store, reader, ids[done[0]], from_entry, &put)
        else:
            status = OK              # it was deleted meanwhile, and may exist anew
        if status == OK and lasting[done[0]] and doubts_hold(&store.index.doubts, ids[done[0]]):
            status = index_put_doubt(store.index, ids[done[0]], True)
        elif status == OK:
            status = index_delete_doubt(store.index, ids[done[0]])
        if status == OK:
            done[0] += 1
            from_entry[0] = 0
    if status != OK and status != FULL:
        index_abort(store.index)
        return status
    return index_commit(store.index)


cdef void let_out(Store* store, int64_t ledger, bint lasting) noexcept nogil:
    cdef Shard* shard = shard_of(store, ledger)
    cdef Ledger* known
    if not doubts_hold(&store.index.doubts, ledger):
        return
    if lasting:
        doubts_add(&store.index.doubts, ledger, True)
    else:
        doubts_drop(&store.index.doubts, ledger)
    pthread_mutex_lock(&shard.lock)
    known = ledger_find(&shard.ledgers, ledger)
    if known != NULL:
        known.last_known = False         # a run that was put back may follow the last known entry
    pthread_mutex_unlock(&shard.lock)


cdef Status index_take_found(Store* store, LocationIndex* found, const int64_t* ids, const uint8_t* lasting,
                             size_t count, size_t* done, int64_t* from_entry) noexcept nogil:
    cdef IndexReader* reader = index_reader(found)
    cdef size_t i
    cdef Status status
    done[0] = 0
    if reader == NULL:
        return NO_MEMORY
    pthread_mutex_lock(&store.writing)
    status = take_some(store, reader, ids, lasting, count, done, from_entry)
    if status == OK:
        step(STEP_FOUND_COMMITTED)
        for i in range(done[0]):
            let_out(store, ids[i], lasting[i])
    pthread_mutex_unlock(&store.writing)
    index_reader_free(reader)
    return status


cdef class DirectoryIndexRepair:
    """The repair of one directory's index; the stub describes it."""
    cdef StorageEngine stores
    cdef DirectoryStore handle
    cdef bytes old
    cdef bytes new
    cdef uint64_t map_bytes

    def __init__(self, StorageEngine stores not None, DirectoryStore handle not None, index, new, uint64_t map_bytes):
        self.stores, self.handle = stores, handle
        self.old, self.new, self.map_bytes = os.fsencode(index), os.fsencode(new), map_bytes

    def wait(self, double timeout_s):
        cdef int64_t deadline = now_ns() + <int64_t> (timeout_s * 1e9)
        cdef bint noted
        with nogil:
            noted = damage_wait(&self.handle.store.index.damage, deadline)
        return bool(noted)

    def stop(self):
        if self.handle.store.index != NULL:
            damage_stop(&self.handle.store.index.damage)

    def note(self):
        damage_note(&self.handle.store.index.damage, -1)

    def salvage(self):
        cdef Repaired repaired
        cdef Status status
        cdef const char* old = self.old
        cdef const char* new_ = self.new
        with nogil:
            status = index_salvage(self.handle.store, self.stores.stores.ops, old, new_, self.map_bytes, &repaired)
        self.check(status, "copying the readable part of the location index")
        stores_request_flush(self.stores.stores)
        return repaired.runs, repaired.lost, repaired.ledgers, repaired.doubtful

    def doubts(self):
        return doubts_list(&self.handle.store.index.doubts)

    def is_open(self, uint32_t log_id):
        return bool(log_ids_is_open(self.handle.store.ids, log_id))

    def committed(self, uint32_t log_id):
        cdef int64_t committed = log_ids_committed(self.handle.store.ids, log_id)
        return None if committed < 0 else committed

    def stats(self):
        cdef LocationIndex* index = self.handle.store.index
        if index == NULL:
            return {"index_damage": 0, "doubtful_ledgers": 0}
        return {"index_damage": bk_load(&index.damage.total), "doubtful_ledgers": bk_load(&index.doubts.count)}

    def take_damage(self):
        return damage_take(&self.handle.store.index.damage) if self.handle.store.index != NULL else None

    def points_into(self, uint32_t log_id, uint64_t offset):
        cdef IndexReader* reader
        cdef bint found = False
        cdef Status status = NO_MEMORY
        with nogil:
            reader = index_reader(self.handle.store.index)
            if reader != NULL:
                status = points_into(reader, log_id, offset, &found)
                index_reader_free(reader)
        self.check(status, f"looking for entries in log {log_id:x}")
        return bool(found)

    def take_found(self, Index found not None, const int64_t[::1] ids, const uint8_t[::1] lasting):
        cdef size_t at = 0, done = 0
        cdef size_t count = ids.shape[0]
        cdef int64_t entry = 0
        cdef Status status
        if found.raw == NULL or lasting.shape[0] != ids.shape[0]:
            raise ValueError("the found index is closed, or `ids` and `lasting` differ in length")
        while at < count:
            with nogil:
                status = index_take_found(self.handle.store, found.raw, &ids[at], &lasting[at], count - at, &done,
                                          &entry)
            self.check(status, "putting back entries found in entry logs")
            at += done

    cdef check(self, Status status, what):
        if status == NO_MEMORY:
            raise MemoryError(f"{what}: no memory")
        if status == NO_SPACE:
            raise OSError(errno.ENOSPC, f"{what}: no space", self.handle.directory)
        if status != OK:
            raise OSError(errno.EIO, f"{what} failed (status {<int> status})", self.handle.directory)
