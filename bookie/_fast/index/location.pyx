"""The location index on LMDB: reads by any thread through its own reader.

An IndexReader owns a read transaction, renewed for each call and reset after it so that no old pages stay pinned; that
is its only purpose. Pages are read with pread from the snapshot of the last commit (`index.search`). The LocationIndex
owns the environment, the write transaction and the scratch memory of the writing thread (`index.writes`).
"""
from libc.errno cimport ENOMEM
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from bookie._fast.base.lmdb_c cimport MDB_RDONLY, MDB_READERS_FULL, MDB_env, mdb
from bookie._fast.base.short_wait cimport wait_shortly
from bookie._fast.base.sync cimport bk_add, bk_exchange, bk_fence, bk_load, bk_store
from bookie._fast.base.types cimport CORRUPT, END, IO_ERROR, NO_ENTRY, NO_MEMORY, OK, Status
from bookie._fast.index.codec cimport StoredRun, fence_unpack, ledger_forgive, ledger_unpack, run_bytes, run_length
from bookie._fast.index.damage cimport damage_note
from bookie._fast.index.doubts cimport doubt_unpack, doubts_hold_since
from bookie._fast.index.guard cimport (
    TABLE_DOUBTS,
    TABLE_FENCES,
    TABLE_LEDGERS,
    TABLE_LOCATIONS,
    guard_free,
    guard_init,
)
from bookie._fast.index.key cimport RunKey
from bookie._fast.index.lmdb_pages cimport Node, Tree
from bookie._fast.index.lmdb_tree cimport TreeWalk, tree_walk
from bookie._fast.index.search cimport (
    search_following,
    search_free,
    search_from,
    search_last,
    search_next,
    search_prepare,
    search_spanning,
)
from bookie._fast.index.pending cimport pending_each, pending_last, pending_seek
from bookie._fast.index.snapshot cimport (
    SnapshotUser,
    snapshot_leave,
    snapshot_take,
    snapshots_add_user,
    snapshots_remove_user,
    snapshots_replace,
)
from bookie._fast.index.table cimport run_describe

cdef struct EachOf:
    # A walk over one of the small tables: the callback that is set tells which.
    ledger_fn ledger
    fence_fn fence
    void* context
    bint forgiving
    uint64_t count
    bint missed


cdef void index_read_through(LocationIndex* index, FileOps* ops) noexcept nogil:
    index.snapshots.ops = ops


cdef const char* index_error_text(int error) noexcept nogil:
    return mdb.strerror(error)


cdef void fill_hit(const StoredRun* run, uint32_t slot, int64_t upper, IndexHit* hit) noexcept nogil:
    """Describe an entry of the run. The span ends before the id `upper`, whose latest copy is not in the table yet."""
    cdef uint32_t before
    cdef uint32_t end = run.count
    if upper - run.first < <int64_t> end:
        end = <uint32_t> (upper - run.first)
    hit.entry = run.first + slot
    hit.log_id = run.log_id
    hit.offset = run.offset + run_bytes(run, 0, slot, &before)
    hit.length = run_length(run, slot)
    hit.span_bytes = run_bytes(run, slot, end, &hit.span_entries)
    hit.span_last = run.first + end - 1


# --- readers ---

cdef IndexReader* index_reader(LocationIndex* index) noexcept nogil:
    cdef IndexReader* reader
    cdef int error
    if bk_load(&index.failed):
        return NULL
    reader = <IndexReader*> calloc(1, sizeof(IndexReader))
    if reader == NULL:
        return NULL
    reader.index = index
    go_in(index)
    snapshots_add_user(&index.snapshots, &reader.user)
    error = open_reader(reader)
    if error == 0:
        mdb.txn_reset(reader.txn)
    bk_add(&index.inside, -1)
    if error == MDB_READERS_FULL:
        index_reader_free(reader)
        return NULL
    return reader                # after any other error `enter` tries again, perhaps in an index that was repaired


cdef int open_reader(IndexReader* reader) noexcept nogil:
    """Begin a read transaction of the current environment; return the error of LMDB."""
    cdef int error = mdb.txn_begin(reader.index.env, NULL, MDB_RDONLY, &reader.txn)
    if error:
        reader.txn = NULL
    return error


cdef void close_reader(IndexReader* reader) noexcept nogil:
    if reader.txn != NULL:
        mdb.txn_abort(reader.txn)
    reader.txn = NULL
    reader.search.leaf_number = 0


cdef void index_reader_free(IndexReader* reader) noexcept nogil:
    cdef LocationIndex* index = reader.index
    go_in(index)
    snapshots_remove_user(&index.snapshots, &reader.user)
    close_reader(reader)
    bk_add(&index.inside, -1)
    search_free(&reader.search)
    free(reader)


cdef void go_in(LocationIndex* index) noexcept nogil:
    """Count a reader in. Readers never wait for each other; they wait for a writer that replaces the map."""
    cdef uint32_t looks = 0
    while True:
        bk_add(&index.inside, 1)
        bk_fence()               # a writer that replaces the map sets `moving` first and then counts the readers
        if not bk_load(&index.moving):
            return
        bk_add(&index.inside, -1)
        while bk_load(&index.moving):
            wait_shortly(&looks)


cdef Status enter(IndexReader* reader) noexcept nogil:
    """Renew the transaction, then take the latest snapshot, which it pins. After OK the caller must leave."""
    cdef int error
    go_in(reader.index)
    if bk_load(&reader.index.failed):
        bk_add(&reader.index.inside, -1)
        return IO_ERROR
    reader.ended = bk_load(&reader.index.doubts.ended)
    # There is no transaction if the environment was replaced since the last call.
    error = mdb.txn_renew(reader.txn) if reader.txn != NULL else open_reader(reader)
    if error:
        if error != ENOMEM and error != MDB_READERS_FULL:
            damage_note(&reader.index.damage, -1)    # LMDB cannot use the meta pages
        bk_add(&reader.index.inside, -1)
        return IO_ERROR
    reader.snapshot = snapshot_take(&reader.index.snapshots, &reader.user)
    if reader.snapshot == NULL:
        leave(reader)
        return IO_ERROR
    reader.search.ops = reader.index.snapshots.ops
    reader.search.file = reader.snapshot.file
    reader.search.tree = reader.snapshot.tables[TABLE_LOCATIONS]
    reader.search.sums = reader.snapshot.sums
    reader.search.commit = reader.snapshot.commit
    reader.search.from_disk = False
    if not search_prepare(&reader.search):
        leave(reader)
        return NO_MEMORY
    return OK


cdef void leave(IndexReader* reader) noexcept nogil:
    mdb.txn_reset(reader.txn)
    snapshot_leave(&reader.user)
    bk_add(&reader.index.inside, -1)


cdef Status leave_with(IndexReader* reader, int64_t ledger, Status status) noexcept nogil:
    """Leave, and return the result for the caller: damage is noted, and no entry of a ledger in doubt is denied."""
    leave(reader)
    if status == CORRUPT or status == IO_ERROR:
        damage_note(&reader.index.damage, ledger)
    if status == NO_ENTRY and doubts_hold_since(&reader.index.doubts, ledger, reader.ended):
        return IO_ERROR
    return status


cdef Status index_lookup(IndexReader* reader, int64_t ledger, int64_t entry, IndexHit* hit) noexcept nogil:
    cdef StoredRun run
    cdef int64_t upper = INT64_MAX
    cdef Status status
    if pending_seek(&reader.index.pending, ledger, entry, hit):
        if hit.entry == entry:
            return OK
        upper = hit.entry
    status = enter(reader)           # after the look at what is pending: that leaves only when it was committed
    if status != OK:
        return status
    status = search_spanning(&reader.search, ledger, entry, &run)
    if status == OK and run_length(&run, <uint32_t> (entry - run.first)) == 0:
        status = NO_ENTRY
    if status == OK:
        fill_hit(&run, <uint32_t> (entry - run.first), upper, hit)
    return leave_with(reader, ledger, status)


cdef Status next_stored(IndexReader* reader, int64_t ledger, int64_t entry, int64_t upper,
                        IndexHit* hit) noexcept nogil:
    """Find the first entry in the table with `entry` <= id < `upper`."""
    cdef StoredRun run
    cdef uint32_t slot = 0
    cdef Status status = search_next(&reader.search, ledger, entry, &run)
    if status != OK:
        return status
    if run.first < entry:
        slot = <uint32_t> (entry - run.first)
    while run_length(&run, slot) == 0:      # ends: the last slot of a run is present
        slot += 1
    if run.first + slot >= upper:
        return NO_ENTRY
    fill_hit(&run, slot, upper, hit)
    return OK


cdef Status index_next(IndexReader* reader, int64_t ledger, int64_t entry, IndexHit* hit) noexcept nogil:
    cdef IndexHit waiting
    cdef Status status
    entry = max(entry, <int64_t> 0)
    if not pending_seek(&reader.index.pending, ledger, entry, &waiting):
        waiting.entry = INT64_MAX
    elif waiting.entry == entry:
        hit[0] = waiting
        return OK
    status = enter(reader)
    if status != OK:
        return status
    status = next_stored(reader, ledger, entry, waiting.entry, hit)
    if status == NO_ENTRY and waiting.entry != INT64_MAX:
        hit[0] = waiting
        status = OK
    if status == OK and hit.entry > entry and doubts_hold_since(&reader.index.doubts, ledger, reader.ended):
        status = NO_ENTRY                       # a lost run may lie before the one found
    return leave_with(reader, ledger, status)


cdef Status index_run_at(IndexReader* reader, int64_t ledger, int64_t entry, IndexRun* run) noexcept nogil:
    cdef StoredRun stored
    cdef Status status = enter(reader)
    if status != OK:
        return status
    status = search_next(&reader.search, ledger, entry, &stored)
    if status == OK:
        run_describe(&stored, reader.lengths, run)
        if run.first > entry and doubts_hold_since(&reader.index.doubts, ledger, reader.ended):
            status = NO_ENTRY
    return leave_with(reader, ledger, status)


cdef Status index_last(IndexReader* reader, int64_t ledger, int64_t* entry) noexcept nogil:
    cdef StoredRun run
    cdef int64_t waiting = pending_last(&reader.index.pending, ledger)
    cdef Status status = enter(reader)
    if status != OK:
        return status
    status = search_last(&reader.search, ledger, &run)
    if status == OK or (status == NO_ENTRY and waiting >= 0):
        entry[0] = max(waiting, run.first + run.count - 1 if status == OK else -1)
        status = OK
        if doubts_hold_since(&reader.index.doubts, ledger, reader.ended):
            status = NO_ENTRY                   # a lost run may lie after the one found
    return leave_with(reader, ledger, status)


cdef Status each_of(IndexReader* reader, uint32_t table, EachOf* each) noexcept nogil:
    """Walk a whole table, which must have as many values as it says. Opening has checked that no page is an old one."""
    cdef TreeWalk walk
    cdef const Tree* tree = &reader.snapshot.tables[table]
    cdef Status status
    memset(&walk, 0, sizeof(TreeWalk))
    walk.file = reader.snapshot.file
    walk.each, walk.lost, walk.context = hand_on, miss, each
    each.count = 0
    each.missed = False
    status = tree_walk(&walk, tree)
    return CORRUPT if status == OK and (each.missed or each.count != tree.entries) else status


cdef Status hand_on(void* context, const Node* node, const uint8_t* value) noexcept nogil:
    cdef EachOf* each = <EachOf*> context
    cdef LedgerRecord record
    cdef int64_t ledger, deleted_ms
    cdef bint lasting
    cdef Status status
    each.count += 1
    if each.fence == NULL and each.ledger == NULL:
        return doubt_unpack(node.key, node.key_size, value, node.value_size, &ledger, &lasting)
    if each.fence != NULL:
        status = fence_unpack(node.key, node.key_size, value, node.value_size, &ledger, &deleted_ms)
        return status if status != OK else each.fence(each.context, ledger, deleted_ms)
    status = ledger_unpack(node.key, node.key_size, value, node.value_size, &record)
    if status == CORRUPT and each.forgiving:
        status = ledger_forgive(node.key, node.key_size, &record)
    return status if status != OK else each.ledger(each.context, &record)


cdef void miss(void* context) noexcept nogil:
    (<EachOf*> context).missed = True


cdef Status index_each_ledger(IndexReader* reader, ledger_fn each, void* context, bint forgiving) noexcept nogil:
    cdef EachOf all_ = EachOf(each, NULL, context, forgiving, 0, False)
    cdef Status status = enter(reader)
    return status if status != OK else leave_with(reader, -1, each_of(reader, TABLE_LEDGERS, &all_))


cdef Status index_each_fence(IndexReader* reader, fence_fn each, void* context) noexcept nogil:
    cdef EachOf all_ = EachOf(NULL, each, context, False, 0, False)
    cdef Status status = enter(reader)
    return status if status != OK else leave_with(reader, -1, each_of(reader, TABLE_FENCES, &all_))


cdef Status index_check_doubts(IndexReader* reader) noexcept nogil:
    cdef EachOf all_ = EachOf(NULL, NULL, NULL, False, 0, False)
    cdef Status status = enter(reader)
    return status if status != OK else leave_with(reader, -1, each_of(reader, TABLE_DOUBTS, &all_))


cdef Status index_each_run(IndexReader* reader, int64_t ledger, run_fn each, void* context) noexcept nogil:
    cdef StoredRun stored
    cdef IndexRun run
    cdef Status status = pending_each(&reader.index.pending, ledger, each, context)
    if status == OK:
        status = enter(reader)
    if status != OK:
        return status
    status = search_next(&reader.search, ledger, 0, &stored)
    while status == OK and stored.ledger == ledger:
        run_describe(&stored, reader.lengths, &run)
        status = each(context, &run)
        if status == OK:
            status = search_following(&reader.search, &stored)
    status = leave_with(reader, ledger, NO_ENTRY if status == OK or status == END else status)
    return OK if status == NO_ENTRY else status


cdef Status index_walk(IndexReader* reader, int64_t* ledger, int64_t* entry, uint32_t most, stored_fn each,
                       void* context) noexcept nogil:
    cdef StoredRun run
    cdef Status status = enter(reader)
    if status != OK:
        return status
    reader.search.from_disk = True              # a walk over all runs also looks for damage
    if most:
        status = search_from(&reader.search, RunKey(ledger[0], entry[0]), &run)
    while status == OK and most:
        status = each(context, &run)
        ledger[0] = run.ledger
        entry[0] = run.first + 1
        most -= 1
        if status == OK and most:
            status = search_following(&reader.search, &run)
    return leave_with(reader, -1, status)


cdef Status index_stat(IndexReader* reader, IndexStat* stat) noexcept nogil:
    cdef const Tree* runs
    cdef const Tree* ledgers
    cdef Status status = enter(reader)
    if status != OK:
        return status
    runs = &reader.snapshot.tables[TABLE_LOCATIONS]
    ledgers = &reader.snapshot.tables[TABLE_LEDGERS]
    stat.runs = runs.entries - 1                # the head is not a run
    stat.run_pages = runs.pages
    stat.ledgers = ledgers.entries
    stat.ledger_pages = ledgers.pages
    stat.page_bytes = reader.snapshot.file.page_bytes
    stat.file_bytes = (reader.snapshot.file.last + 1) * stat.page_bytes
    leave(reader)
    return OK


# --- replacing the environment ---

cdef void index_replace(LocationIndex* index, LocationIndex* fresh) noexcept nogil:
    cdef SnapshotUser* user
    cdef MDB_env* old = index.env
    cdef uint32_t looks = 0
    bk_exchange(&index.moving, 1)
    bk_fence()
    while bk_load(&index.inside):
        wait_shortly(&looks)
    user = index.snapshots.users                # nothing is added or removed: that needs go_in
    while user != NULL:
        close_reader(<IndexReader*> user)
        user = user.next_user
    index.env = fresh.env
    index.locations, index.ledgers, index.fences = fresh.locations, fresh.ledgers, fresh.fences
    guard_free(&index.guard)
    index.guard = fresh.guard
    guard_init(&fresh.guard)
    snapshots_replace(&index.snapshots, &fresh.snapshots)
    index.doubtful = fresh.doubtful
    memcpy(index.committed_sums, fresh.committed_sums, sizeof(index.committed_sums))
    index.too_small = False
    bk_store(&index.moving, 0)
    mdb.env_close(old)
    fresh.env = NULL
    index_close(fresh)
