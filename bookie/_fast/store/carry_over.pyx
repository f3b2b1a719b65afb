"""Ledgers are carried over in ascending order, in small steps under their shard's lock and in small journal groups."""
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, qsort, realloc
from libc.string cimport memset

from bookie._fast.base.by_ledger cimport ByLedger, Chained, ascending_ids, ledger_shard
from bookie._fast.base.crash_steps cimport STEP_CARRIED, STEP_CARRYING, STEP_CARRY_MARKED, step
from bookie._fast.base.cursor cimport load_i64, load_u32
from bookie._fast.base.fatal cimport fatal_is_set
from bookie._fast.base.sync cimport bk_add_relaxed, bk_load, pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.base.types cimport CORRUPT, FULL, IO_ERROR, LENGTH_PREFIX, NO_MEMORY, NO_SPACE, OK
from bookie._fast.cache.pages cimport page_offset
from bookie._fast.cache.runs cimport Found, LedgerRuns, map_find, runs_find
from bookie._fast.entrylog.writer cimport readers_read
from bookie._fast.index.codec cimport IndexRun
from bookie._fast.index.hit cimport IndexHit
from bookie._fast.index.pending cimport PendingBatch, PendingShard, batch_describe, batch_find, pending_seek
from bookie._fast.journal.commit cimport journal_append, journal_append_meta, journal_has_room, journal_kick
from bookie._fast.journal.files cimport journal_bytes_since, journal_mark
from bookie._fast.journal.reader cimport META_FENCE, META_KEY, META_LAC
from bookie._fast.journal.state cimport Journal
from bookie._fast.store.last_mark cimport marks_overwrite, marks_probe, marks_trim
from bookie._fast.store.ledger_table cimport UNCHANGED, Ledger, ledger_find
from bookie._fast.store.stores cimport SHARDS, STORES_MOST, Shard, Store, journal_of

cdef extern from "<unistd.h>" nogil:
    int usleep(unsigned int) noexcept

cdef enum:
    BYTES_A_LOOK = 1 << 16       # copied in one step under a shard's lock, plus one record
    BYTES_A_GROUP = 1 << 20      # copied before a sync is awaited: adds of clients share these groups
    TICK_US = 500

cdef struct Carry:
    Storage* stores
    Store* store
    int64_t groups[STORES_MOST]  # for each journal the last group with a copy
    uint64_t unsynced            # bytes of copies since all were synced
    int64_t bytes
    uint8_t* records             # read from an entry log
    uint64_t room

cdef struct Ids:
    # The ledgers of a shard with something in memory that the disk lacks.
    int64_t* ids
    uint32_t count
    uint32_t room


cdef void list_half(Ids* ids, const ByLedger* table) noexcept nogil:
    cdef uint32_t b
    cdef Chained* at
    for b in range(table.size):
        at = table.buckets[b]
        while at != NULL and ids.count < ids.room:
            ids.ids[ids.count] = at.ledger
            ids.count += 1
            at = at.next


cdef void list_pending(Ids* ids, const PendingBatch* batch) noexcept nogil:
    cdef uint32_t i
    while batch != NULL:
        for i in range(batch.count):
            if ids.count < ids.room and (i == 0 or batch.runs[i].ledger != batch.runs[i - 1].ledger):
                ids.ids[ids.count] = batch.runs[i].ledger
                ids.count += 1
        batch = batch.later


cdef Status list_ledgers(Shard* shard, const PendingBatch* pending, Ids* ids) noexcept nogil:
    """List the ledgers, ascending, some repeatedly. Later changes are journaled after the new mark anyway."""
    cdef const PendingBatch* batch = pending
    cdef Ledger* ledger
    cdef uint32_t i
    pthread_mutex_lock(&shard.lock)
    ids.room = shard.ledgers.table.count
    for i in range(2):
        ids.room += shard.halves[i].table.count
    pthread_mutex_unlock(&shard.lock)
    while batch != NULL:
        ids.room += batch.count
        batch = batch.later
    ids.room += ids.room // 4 + 64
    ids.count = 0
    ids.ids = <int64_t*> malloc(ids.room * sizeof(int64_t))
    if ids.ids == NULL:
        return NO_MEMORY
    list_pending(ids, pending)
    pthread_mutex_lock(&shard.lock)
    for i in range(2):
        list_half(ids, &shard.halves[i].table)
    ledger = shard.ledgers.changed
    while ledger != NULL and ids.count < ids.room:
        ids.ids[ids.count] = ledger.chained.ledger
        ids.count += 1
        ledger = ledger.next_changed
    pthread_mutex_unlock(&shard.lock)
    if ids.count == ids.room:
        return NO_MEMORY             # there are more by now
    qsort(ids.ids, ids.count, sizeof(int64_t), ascending_ids)
    return OK


cdef bint is_stopping(Storage* stores) noexcept nogil:
    cdef bint stopping
    pthread_mutex_lock(&stores.flush_lock)
    stopping = stores.stopping
    pthread_mutex_unlock(&stores.flush_lock)
    return stopping


cdef Status tick(Carry* carry, Journal* journal) noexcept nogil:
    """Give the journal's thread a moment. Return another status than OK if waiting is pointless."""
    if fatal_is_set():
        return IO_ERROR
    if bk_load(&journal.full) or is_stopping(carry.stores):
        return NO_SPACE
    journal_kick(journal)
    usleep(TICK_US)
    return OK


cdef Status await_room(Carry* carry, Journal* journal, uint32_t size) noexcept nogil:
    cdef Status status = OK
    if <uint64_t> size + LENGTH_PREFIX > journal.group_capacity:
        return NO_SPACE              # the buffers were larger when the entry was added
    while status == OK and not journal_has_room(journal, size):
        status = tick(carry, journal)
    return status


cdef Status await_synced(Carry* carry) noexcept nogil:
    cdef Status status = OK
    cdef uint32_t i
    for i in range(carry.stores.journal_count):
        while status == OK and bk_load(&carry.stores.journals[i].synced_group) < carry.groups[i]:
            status = tick(carry, carry.stores.journals[i])
    carry.unsynced = 0
    return status


cdef Status await_next_group(Carry* carry, Journal* journal) noexcept nogil:
    """Wait for the group that had no room for a ledger's facts to be committed."""
    cdef int64_t group = bk_load(&journal.open_group)
    cdef Status status = OK
    while status == OK and bk_load(&journal.open_group) == group:
        status = tick(carry, journal)
    return status


cdef void took(Carry* carry, int64_t ledger, int64_t group, uint32_t size) noexcept nogil:
    carry.groups[<uint64_t> ledger % carry.stores.journal_count] = group
    carry.unsynced += size
    carry.bytes += size


cdef Status carry_facts(Carry* carry, Shard* shard, int64_t id) noexcept nogil:
    """Journal key, fence and LAC as a flush would index them. Under the shard's lock. FULL: some did not fit."""
    cdef Ledger* ledger = ledger_find(&shard.ledgers, id)
    cdef Journal* journal = journal_of(carry.stores, id)
    cdef int64_t group
    if ledger == NULL:
        return OK                    # it was deleted meanwhile
    if ledger.quarantine and ledger.change != UNCHANGED:
        return CORRUPT               # after a crash, only the old records would put the ledger into quarantine again
    group = journal_append_meta(journal, id, META_KEY, ledger.key, ledger.key_size)
    if group and ledger.fenced:
        group = journal_append_meta(journal, id, META_FENCE, NULL, 0)
    if group and ledger.explicit_lac != NULL:
        group = journal_append_meta(journal, id, META_LAC, ledger.explicit_lac, ledger.explicit_lac_size)
    if group == 0:
        return FULL
    took(carry, id, group, ledger.key_size + ledger.explicit_lac_size)
    return OK


cdef int64_t find_newest(LedgerRuns** halves, int64_t entry, Found* found) noexcept nogil:
    """Return the first entry from `entry` on in either half, with its newest copy in `found`; INT64_MAX if none."""
    cdef Found older
    cdef int64_t next_first
    while entry != INT64_MAX:
        found.run = NULL
        found.next_first = INT64_MAX
        if halves[0] != NULL:
            runs_find(halves[0], entry, found)
        if found.run != NULL:
            return entry
        next_first = found.next_first
        if halves[1] != NULL:
            runs_find(halves[1], entry, &older)
            if older.run != NULL:
                found[0] = older
                return entry
            next_first = min(next_first, older.next_first)
        entry = next_first
    return entry


cdef Status carry_entries(Carry* carry, Shard* shard, int64_t id, int64_t* entry, uint32_t* lacking) noexcept nogil:
    """Journal some entries from *entry on; INT64_MAX after the last. Under the shard's lock. FULL: `lacking` bytes."""
    cdef LedgerRuns* halves[2]
    cdef int64_t active = bk_load(&carry.store.active)
    cdef Found found
    cdef uint8_t* record
    cdef uint32_t size
    cdef uint32_t copied = 0
    cdef int64_t group
    halves[0] = map_find(&shard.halves[active], id)
    halves[1] = map_find(&shard.halves[active ^ 1], id)
    while copied < BYTES_A_LOOK:
        entry[0] = find_newest(halves, entry[0], &found)
        if entry[0] == INT64_MAX:
            return OK
        record = found.run.page.data + page_offset(found.run.page, found.slot)
        size = load_u32(record)
        group = journal_append(journal_of(carry.stores, id), record + LENGTH_PREFIX, size)
        if group == 0:
            lacking[0] = size
            return FULL
        took(carry, id, group, LENGTH_PREFIX + size)
        copied += LENGTH_PREFIX + size
        entry[0] += 1
    return OK


cdef bint is_newest(Carry* carry, Shard* shard, int64_t id, int64_t entry, uint32_t log_id,
                    uint64_t offset) noexcept nogil:
    """Return whether an entry that the index lacks has no newer copy than the one in this place. With the shard's lock.
    """
    cdef LedgerRuns* halves[2]
    cdef Found found
    cdef IndexHit hit
    halves[0] = map_find(&shard.halves[0], id)
    halves[1] = map_find(&shard.halves[1], id)
    if find_newest(halves, entry, &found) == entry:
        return False
    if not pending_seek(&carry.store.index.pending, id, entry, &hit):
        return False                 # the ledger was deleted
    return hit.entry == entry and hit.log_id == log_id and hit.offset == offset


cdef Status append_read(Carry* carry, Shard* shard, const IndexRun* run, uint32_t slot, uint64_t offset,
                        const uint8_t* record) noexcept nogil:
    """Journal a record that was read from an entry log, unless there is a newer copy: it would be replayed after that
    if this attempt fails.
    """
    cdef Journal* journal = journal_of(carry.stores, run.ledger)
    cdef uint32_t size = run.lengths[slot]
    cdef int64_t group = 0
    cdef Status status = FULL
    cdef Status waited
    while status == FULL:
        status = OK
        pthread_mutex_lock(&shard.lock)
        if is_newest(carry, shard, run.ledger, run.first + slot, run.log_id, offset):
            group = journal_append(journal, record + LENGTH_PREFIX, size)
            status = OK if group else FULL
        pthread_mutex_unlock(&shard.lock)
        if group:
            took(carry, run.ledger, group, LENGTH_PREFIX + size)
        if status == FULL:
            waited = await_room(carry, journal, size)
            if waited != OK:
                return waited
    return sync_some(carry)


cdef Status sync_some(Carry* carry) noexcept nogil:
    """Wait for the copies to be synced, if they are many."""
    cdef Status status
    if carry.unsynced < BYTES_A_GROUP:
        return OK
    status = await_synced(carry)
    step(STEP_CARRYING)
    return status


cdef Status read_records(Carry* carry, uint32_t log_id, uint64_t offset, uint64_t size) noexcept nogil:
    cdef uint8_t* grown
    cdef size_t got = 0
    if size > carry.room:
        grown = <uint8_t*> realloc(carry.records, size)
        if grown == NULL:
            return NO_MEMORY
        carry.records = grown
        carry.room = size
    if readers_read(carry.store.logs, log_id, offset, carry.records, size, &got, 0) != OK or got != size:
        return CORRUPT               # not IO_ERROR, which would mean that a write failed
    return OK


cdef Status carry_run(Carry* carry, Shard* shard, const IndexRun* run) noexcept nogil:
    cdef uint32_t slot = 0
    cdef uint32_t end
    cdef uint64_t offset = run.offset
    cdef uint64_t size, at
    cdef Status status = OK
    while slot < run.count and status == OK:
        end = slot
        size = 0
        while end < run.count and (size == 0 or size + LENGTH_PREFIX + run.lengths[end] <= BYTES_A_LOOK):
            size += <uint64_t> LENGTH_PREFIX + run.lengths[end] if run.lengths[end] else 0
            end += 1
        status = read_records(carry, run.log_id, offset, size)
        at = 0
        while slot < end and status == OK:
            if run.lengths[slot]:
                if (load_u32(carry.records + at) != run.lengths[slot]
                        or load_i64(carry.records + at + LENGTH_PREFIX) != run.ledger
                        or load_i64(carry.records + at + LENGTH_PREFIX + 8) != run.first + slot):
                    return CORRUPT
                status = append_read(carry, shard, run, slot, offset + at, carry.records + at)
                at += <uint64_t> LENGTH_PREFIX + run.lengths[slot]
            slot += 1
        offset += size
    return status


cdef Status carry_pending(Carry* carry, Shard* shard, int64_t id) noexcept nogil:
    """Journal what was flushed and is not in the index."""
    cdef PendingShard* pending = &carry.store.index.pending.shards[ledger_shard(id)]
    cdef PendingBatch* batch = pending.earliest      # nothing is flushed meanwhile, so batches stay
    cdef IndexRun run
    cdef uint32_t at
    cdef Status status = OK
    while batch != NULL:
        at = batch_find(batch, id)
        while at < batch.count and batch.runs[at].ledger == id and status == OK:
            pthread_mutex_lock(&pending.lock)
            batch_describe(batch, at, &run)
            pthread_mutex_unlock(&pending.lock)
            status = carry_run(carry, shard, &run)
            at += 1
        batch = batch.later
    return status


cdef Status carry_ledger(Carry* carry, Shard* shard, int64_t id) noexcept nogil:
    cdef Journal* journal = journal_of(carry.stores, id)
    cdef int64_t entry = 0
    cdef uint32_t lacking = 0
    cdef Status status = FULL
    cdef Status waited
    while status == FULL:            # the facts come first, since replay skips entries of ledgers it does not know
        pthread_mutex_lock(&shard.lock)
        status = carry_facts(carry, shard, id)
        pthread_mutex_unlock(&shard.lock)
        if status == FULL:
            waited = await_next_group(carry, journal)
            if waited != OK:
                return waited
    if status == OK:
        status = carry_pending(carry, shard, id)
    while entry != INT64_MAX and status == OK:
        pthread_mutex_lock(&shard.lock)
        status = carry_entries(carry, shard, id, &entry, &lacking)
        pthread_mutex_unlock(&shard.lock)
        status = await_room(carry, journal, lacking) if status == FULL else status
        if status == OK:
            status = sync_some(carry)
    return status


cdef Status carry_shard(Carry* carry, uint32_t at) noexcept nogil:
    cdef Shard* shard = &carry.store.shards[at]
    cdef Ids ids
    cdef uint32_t i
    cdef Status status = list_ledgers(shard, carry.store.index.pending.shards[at].earliest, &ids)
    for i in range(ids.count):
        if status == OK and (i == 0 or ids.ids[i] != ids.ids[i - 1]):
            status = carry_ledger(carry, shard, ids.ids[i])
    free(ids.ids)
    return status


cdef Status carry_store(Storage* stores, Store* store) noexcept nogil:
    """Carry over one directory, and move its mark."""
    cdef int64_t ids[STORES_MOST]
    cdef uint64_t offsets[STORES_MOST]
    cdef Carry carry
    cdef uint32_t i
    cdef Status status = marks_probe(stores, store)
    memset(&carry, 0, sizeof(Carry))
    carry.stores = stores
    carry.store = store
    for i in range(stores.journal_count):
        journal_mark(stores.journals[i], &ids[i], &offsets[i])
        if ids[i] == 0 and status == OK:
            status = NO_SPACE        # a full disk keeps that journal from opening its first file
    for i in range(SHARDS):
        if status == OK:
            status = carry_shard(&carry, i)
    free(carry.records)
    if status == OK:
        status = await_synced(&carry)
    if status != OK:
        return status
    step(STEP_CARRIED)
    status = marks_overwrite(stores, store, ids, offsets)
    if status == OK:
        step(STEP_CARRY_MARKED)
        bk_add_relaxed(&store.stats.carry_overs, 1)
        bk_add_relaxed(&store.stats.carried_bytes, carry.bytes)
    return status


cdef bint is_held_back(Storage* stores, const Store* store) noexcept nogil:
    """Return whether a directory that could not be flushed holds back too much of a journal. Not while it lags: what
    it lacks is in old files only.
    """
    cdef uint32_t i
    cdef int64_t held
    cdef Journal* journal
    if not store.backlog.late or bk_load(&store.lagging):
        return False
    for i in range(stores.journal_count):
        journal = stores.journals[i]
        held = journal_bytes_since(journal, bk_load(&store.backlog.marked[i]))
        if held - store.backlog.beyond > journal.backlog.hurry_bytes:
            return True
    return False


cdef Status stores_carry_over(Storage* stores) noexcept nogil:
    cdef uint32_t i
    cdef Status status
    cdef bint carried = False
    for i in range(stores.journal_count):
        if not stores.write_data or not stores.journals[i].sync_data:
            return OK                # entries are not journaled, or not durably: copies could not replace the old files
    for i in range(stores.count):
        if not is_held_back(stores, stores.stores[i]):
            continue
        status = carry_store(stores, stores.stores[i])
        if status == IO_ERROR:
            return status
        if status == OK:
            carried = True
        else:
            stores.stores[i].backlog.beyond += stores.journals[0].backlog.hurry_bytes
    if carried:
        marks_trim(stores)
    return OK


cdef bint stores_hurry(Storage* stores) noexcept nogil:
    cdef uint32_t i
    for i in range(stores.journal_count):
        if bk_load(&stores.journals[i].backlog.hurry):
            return True
    return False
