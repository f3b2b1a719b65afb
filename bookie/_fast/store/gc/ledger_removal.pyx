"""Deletes ledgers from the index in bounded transactions, then from halves, read cache and table under their shard."""
import errno
import logging

import numpy as np

from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.by_ledger cimport Chained
from bookie._fast.base.crash_steps cimport STEP_DELETE_COMMITTED, STEP_DELETE_FORGOTTEN, step
from bookie._fast.base.planted cimport PLANT_DELETE_INDEX_ONLY, PLANT_PENDING_STAYS, bk_planted
from bookie._fast.base.sync cimport bk_add, pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.base.types cimport FULL, NO_SPACE, OK
from bookie._fast.cache.runs cimport map_remove
from bookie._fast.entrylog.set cimport log_set_mark
from bookie._fast.index.doubts cimport doubts_drop, doubts_hold
from bookie._fast.index.ledger_tables cimport index_delete_doubt, index_delete_ledger
from bookie._fast.index.location cimport index_abort, index_begin, index_commit, index_delete_runs
from bookie._fast.index.pending cimport pending_remove
from bookie._fast.store.gc.kept_fences cimport fence_keep, fences_fit, needs_fence
from bookie._fast.store.ledger_table cimport Ledger, ledger_find, ledger_kept_fence, ledger_mark_changed, ledger_remove
from bookie._fast.store.notices cimport post_notices, take_watchers
from bookie._fast.store.storage cimport DirectoryStore, StorageEngine
from bookie._fast.store.stores cimport SHARDS, Shard, shard_of, store_of

cdef enum:
    BUCKETS_A_LOOK = 256         # of a shard's table per step, so that its lock is held for microseconds


log = logging.getLogger(__name__)


cdef bint forget(Storage* stores, Store* store, int64_t ledger_id) noexcept nogil:
    """Remove a ledger from memory; return whether it was known."""
    cdef Shard* shard = shard_of(store, ledger_id)
    cdef Ledger* ledger
    cdef uint64_t watchers = 0
    cdef uint32_t i
    if not bk_planted(PLANT_PENDING_STAYS):
        pending_remove(&store.index.pending, ledger_id)
    pthread_mutex_lock(&shard.lock)
    if not bk_planted(PLANT_DELETE_INDEX_ONLY):
        map_remove(&shard.halves[0], ledger_id)
        map_remove(&shard.halves[1], ledger_id)
        for i in range(shard.kept.count):
            map_remove(&shard.kept.maps[i], ledger_id)
        map_remove(&shard.cached, ledger_id)
    ledger = ledger_find(&shard.ledgers, ledger_id)
    if ledger != NULL and needs_fence(ledger) and ledger_kept_fence(&shard.ledgers, ledger_id) == NULL:
        ledger_mark_changed(&shard.ledgers, ledger)        # fenced since the transaction: deleted by the next call
        ledger.last = -1
        ledger.last_known = True
    elif ledger != NULL:
        watchers = take_watchers(ledger, False)
        ledger_remove(&shard.ledgers, ledger)
    pthread_mutex_unlock(&shard.lock)
    doubts_drop(&store.index.doubts, ledger_id)      # what was lost of it is deleted, too
    if watchers:
        post_notices(&stores.board, watchers, ledger_id)
    return ledger != NULL


cdef Status delete_some(Store* store, const int64_t* ids, size_t count, size_t* done) noexcept nogil:
    """Run one transaction: ids[*done] ledgers are deleted from the index completely, the next one perhaps in part."""
    cdef uint32_t most = REMOVE_RUNS_MOST
    cdef Status status = index_begin(store.index)
    if status != OK:
        return status
    done[0] = 0
    while done[0] < count and done[0] < REMOVE_LEDGERS_MOST and most:
        status = index_delete_runs(store.index, ids[done[0]], &most)
        if status == OK:
            # The record is deleted last, so that after a crash a half-deleted ledger is still known by it.
            status = index_delete_ledger(store.index, ids[done[0]])
        if status == OK and doubts_hold(&store.index.doubts, ids[done[0]]):
            status = index_delete_doubt(store.index, ids[done[0]])
        if status == OK:
            status = fence_keep(store, ids[done[0]])
        if status != OK:
            break
        done[0] += 1
    if status != OK and status != FULL:
        index_abort(store.index)
        return status
    return index_commit(store.index)


cdef Status ledgers_delete(Storage* stores, Store* store, const int64_t* ids, size_t count,
                           int64_t* known) noexcept nogil:
    cdef size_t done, i
    cdef Status status = OK
    known[0] = 0
    while count and status == OK:
        done = 0
        pthread_mutex_lock(&store.writing)
        status = delete_some(store, ids, count, &done)
        if status == NO_SPACE:
            status = delete_some(store, ids, count, &done)       # if the index's map was full, it is larger now
        if status == OK:
            step(STEP_DELETE_COMMITTED)
            # Entries that a read found in the index before must not enter the read cache after this.
            bk_add(&store.overrides, 1)
            for i in range(done):
                known[0] += forget(stores, store, ids[i])
                log_set_mark(store.log, ids[i])          # the next checkpoint closes a log of its own
        pthread_mutex_unlock(&store.writing)
        if status == OK:
            step(STEP_DELETE_FORGOTTEN)
            ids += done
            count -= done
    return status


def delete_ledgers(StorageEngine stores, DirectoryStore handle, ids) -> int:
    """Delete ledgers of this directory, after a checkpoint; return how many were known. Any order; unknown ids are
    allowed.

    While as many fences of deleted ledgers are kept as allowed, fenced ledgers are left for another time.

    OSError: ENOSPC (those before stay deleted), EIO (the index failed). ValueError: a ledger of another directory.
    """
    wanted = np.unique(np.ascontiguousarray(ids, np.int64))
    cdef int64_t[::1] view = wanted
    cdef size_t count = view.shape[0]
    cdef size_t i
    cdef int64_t known = 0
    cdef Status status = OK
    if count == 0:
        return 0
    for i in range(count):
        if view[i] < 0 or store_of(stores.stores, view[i]) != handle.store:
            raise ValueError(f"ledger {view[i]} does not belong to {handle.directory}")
    with nogil:
        count = fences_fit(handle.store, &view[0], count)
        status = ledgers_delete(stores.stores, handle.store, &view[0], count, &known)
    if count < <size_t> view.shape[0]:
        log.warning("fenced ledgers are not deleted until older kept fences have expired",
                    extra={"ledgers": view.shape[0] - count, "directory": handle.directory,
                           "remedy": "raise dbStorage_maxLedgers, which limits the number of kept fences"})
    if status == NO_SPACE:
        raise OSError(errno.ENOSPC, "no space for the deletion of ledgers from the location index", handle.directory)
    if status != OK:
        raise OSError(errno.EIO, f"deleting ledgers from the location index failed (status {<int> status})",
                      handle.directory)
    return known


cdef int64_t look(Shard* shard, uint32_t begin, uint32_t* size, int64_t[::1] out, int64_t found) noexcept nogil:
    """Collect the ids in a few buckets from `begin` on; return how many are in `out` now, or -1 if there is no room."""
    cdef Chained* at
    cdef uint32_t i
    pthread_mutex_lock(&shard.lock)
    size[0] = shard.ledgers.table.size
    for i in range(begin, min(begin + BUCKETS_A_LOOK, shard.ledgers.table.size)):
        at = shard.ledgers.table.buckets[i]
        while at != NULL and found >= 0:
            if found == out.shape[0]:
                found = -1
                break
            out[found] = at.ledger
            found += 1
            at = at.next
    pthread_mutex_unlock(&shard.lock)
    return found


cdef int64_t look_all(DirectoryStore handle, int64_t[::1] out) noexcept nogil:
    """Collect every id once; a shard whose table grew meanwhile is read again from the start."""
    cdef Shard* shard
    cdef int64_t found = 0
    cdef int64_t before
    cdef uint32_t begin, size, i, first_size
    for i in range(SHARDS):
        shard = &handle.store.shards[i]
        before = found
        begin = 0
        first_size = 0
        while found >= 0:
            found = look(shard, begin, &size, out, found)
            if begin and size != first_size:
                found = before
                begin = 0
                continue
            first_size = size
            begin += BUCKETS_A_LOOK
            if begin >= size:
                break
        if found < 0:
            break
    return found


def ledger_ids(DirectoryStore handle):
    """Return the ids of all ledgers known in this directory, ascending."""
    cdef int64_t found = -1
    cdef int64_t[::1] view
    room_for = max(1024, handle.ledger_count())
    while found < 0:
        room_for += room_for // 8 + 1024
        ids = np.empty(room_for, np.int64)
        view = ids
        with nogil:
            found = look_all(handle, view)
    return np.unique(ids[:found])
