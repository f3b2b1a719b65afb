"""Closed logs, live bytes, verified deletion, compaction: a thin class for each directory over the modules of gc."""
import errno
import os
import re
from collections import namedtuple

import numpy as np

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from bookie._fast.base.pace cimport pace_pause, pace_set_rate, pace_stop
from bookie._fast.base.sync cimport bk_load, bk_store
from bookie._fast.base.types cimport CORRUPT, END, NO_MEMORY, NO_SPACE, OK
from bookie._fast.entrylog.ids cimport log_ids_is_open
from bookie._fast.entrylog.ledger_bytes cimport (
    LedgerBytes,
    LedgerMap,
    ledger_map_add,
    ledger_map_free,
    ledger_map_reserve,
    ledger_map_sorted,
)
from bookie._fast.index.codec cimport StoredRun, run_bytes
from bookie._fast.index.location cimport index_walk
from bookie._fast.store.gc.compaction cimport (
    WALK_RUNS,
    collect_log,
    compaction_finish,
    compaction_free,
    compaction_init,
    points_into,
    remove_log,
)
from bookie._fast.store.gc.liveness cimport ledger_is_known

from bookie._fast.entrylog.map import LogLedgers, read_map, scan_ledgers
from bookie._fast.store.gc.kept_fences import drop_fences
from bookie._fast.store.gc.ledger_removal import delete_ledgers, ledger_ids

__all__ = ["ClosedLogs", "Collected", "DirectoryCollector", "LiveBytes", "LogLedgers"]

ClosedLogs = namedtuple("ClosedLogs", "ids file_bytes")
LiveBytes = namedtuple("LiveBytes", "ids live runs")
Collected = namedtuple("Collected", "outcome moved_records moved_bytes dropped_records dropped_bytes file_bytes "
                                    "torn_at ledger entry offset")

LOG_NAME = re.compile(r"([0-9a-f]{1,8})\.log")
OUTCOMES = ("unlinked", "gone", "open", "live", "orphans", "torn", "disagrees", "no space", "unreadable", "stopped",
            "quarantined", "repaired")
STOPPED = Collected("stopped", 0, 0, 0, 0, 0, None, None, None, None)

cdef struct Walk:
    LedgerMap logs               # bytes by log id
    int64_t runs
    int64_t entries


cdef Status sum_up(void* context, const StoredRun* run) noexcept nogil:
    cdef Walk* walk = <Walk*> context
    cdef uint32_t present
    cdef Status status = ledger_map_reserve(&walk.logs)
    if status == OK:
        ledger_map_add(&walk.logs, run.log_id, run_bytes(run, 0, run.count, &present))
        walk.runs += 1
        walk.entries += present
    return status


@cython.no_gc_clear
cdef class DirectoryCollector:
    """Garbage collection in one ledger directory; the stub describes it."""

    def __cinit__(self, StorageEngine stores, DirectoryStore handle):
        cdef Status status
        self.engine = stores
        self.handle = handle
        self.directory = handle.directory
        self.live = {}
        with nogil:
            status = compaction_init(&self.compaction, stores.stores, handle.store)
        if status != OK:
            raise MemoryError(f"{handle.directory}: garbage collection got no memory or no reader of the index")

    def __dealloc__(self):
        compaction_free(&self.compaction)

    def close(self):
        """Close the compaction log and free everything. No other call is in progress; a second one does nothing."""
        if self.compaction.stores == NULL:
            return
        with nogil:
            compaction_finish(&self.compaction)      # a failure has set the fatal latch
        compaction_free(&self.compaction)

    cdef int need(self) except -1:
        if self.compaction.stores == NULL:
            raise ValueError(f"{self.directory}: garbage collection is closed")
        return 0

    cdef int check(self, Status status, str doing) except -1:
        if status == OK:
            return 0
        if status == NO_MEMORY:
            raise MemoryError(f"{self.directory}: no memory for {doing}")
        if status == NO_SPACE:
            raise OSError(errno.ENOSPC, f"{doing}: no space left for the index; free disk space", self.directory)
        why = "a stored value is damaged; rebuild the index" if status == CORRUPT else f"status {<int> status}"
        raise OSError(errno.EIO, f"{doing}: the location index failed ({why})", self.directory)

    def ledger_ids(self):
        return ledger_ids(self.handle)

    def closed_logs(self):
        """Return ids and sizes of the closed logs, which never change again."""
        self.need()
        found = []
        with os.scandir(self.directory) as listed:
            for item in listed:
                name = LOG_NAME.fullmatch(item.name)
                if name and not log_ids_is_open(self.handle.store.ids, int(name[1], 16)):
                    try:
                        found.append((int(name[1], 16), item.stat().st_size))
                    except FileNotFoundError:
                        continue
        found.sort()
        table = np.array(found, np.int64).reshape(-1, 2)
        return ClosedLogs(table[:, 0].copy(), table[:, 1].copy())

    def live_bytes(self):
        """Return the bytes that the index points at, by log. It also corrects the count of stored entries."""
        cdef Walk walk
        cdef LedgerBytes* slots
        cdef int64_t ledger = 0
        cdef int64_t entry = 0
        cdef Status status = OK
        cdef size_t i
        cdef int64_t[::1] ids, sums
        self.need()
        closed = self.closed_logs().ids
        before = bk_load(&self.handle.store.stats.flushed_entries)
        pending = bk_load(&self.handle.store.index.pending.entries)
        memset(&walk, 0, sizeof(walk))
        try:
            with nogil:
                while status == OK:
                    status = index_walk(self.compaction.reader, &ledger, &entry, WALK_RUNS, sum_up, &walk)
            self.check(OK if status == END else status, "adding up live bytes")
            before -= bk_load(&self.handle.store.stats.flushed_entries)
            bk_store(&self.handle.store.stats.index_entries, walk.entries + pending - before)
            log_ids = np.empty(walk.logs.count, np.int64)
            live = np.empty(walk.logs.count, np.int64)
            if walk.logs.count:
                ids, sums = log_ids, live
                slots = ledger_map_sorted(&walk.logs)
                for i in range(walk.logs.count):
                    ids[i] = slots[i].ledger
                    sums[i] = <int64_t> slots[i].bytes
        finally:
            ledger_map_free(&walk.logs)
        self.live = dict.fromkeys(closed.tolist(), 0)
        self.live.update((log_id, size) for log_id, size in zip(log_ids.tolist(), live.tolist()) if log_id in self.live)
        return LiveBytes(log_ids, live, walk.runs)

    def log_ledgers(self, uint32_t log_id):
        """Return the ledgers of a log from its ledgers map, or else by a scan."""
        path = f"{self.directory}/{log_id:x}.log"
        found = read_map(path)
        return found if found is not None else scan_ledgers(path, self.handle.files)

    def points_into(self, uint32_t log_id, uint64_t offset=0):
        cdef bint found = False
        cdef Status status
        self.need()
        with nogil:
            status = points_into(self.compaction.reader, log_id, offset, &found)
        self.check(status, f"looking for entries in log {log_id:x}")
        return found

    def delete_ledgers(self, ids):
        self.need()
        return delete_ledgers(self.engine, self.handle, ids)

    def drop_fences(self, int64_t kept_ms):
        self.need()
        return drop_fences(self.handle, kept_ms)

    cdef object collected(self, const Result* r):
        return Collected(OUTCOMES[<int> r.outcome], r.moved_records, r.moved_bytes, r.dropped_records, r.dropped_bytes,
                         r.file_bytes, None if r.torn_at < 0 else r.torn_at,
                         None if r.ledger < 0 else r.ledger, None if r.ledger < 0 else r.entry,
                         None if r.ledger < 0 else r.offset)

    cdef object collect(self, uint32_t log_id, bint move):
        """Scan the log, move its live records if `move`, and remove it if nothing in it is needed."""
        cdef Result result
        cdef Status status
        cdef int64_t live
        self.need()
        if self.stopped:
            return STOPPED
        live = self.live.get(log_id, -1)
        with nogil:
            status = collect_log(&self.compaction, log_id, move, live, &result)
        self.live.pop(log_id, None)
        self.check(status, f"collecting log {log_id:x}")
        return self.collected(&result)

    def compact(self, uint32_t log_id):
        return self.collect(log_id, True)

    def unlink_log(self, uint32_t log_id):
        """Remove a log that the index does not point into, without a scan if its map names no existing ledger."""
        cdef Result result
        cdef Status status
        cdef int64_t repairs
        self.need()
        if self.stopped:
            return STOPPED
        memset(&result, 0, sizeof(result))
        result.torn_at = result.ledger = -1
        repairs = bk_load(&self.handle.store.index.damage.repairs)
        if log_ids_is_open(self.handle.store.ids, log_id):
            return STOPPED._replace(outcome="open")
        if self.live.get(log_id, -1) != 0 and self.points_into(log_id):
            return STOPPED._replace(outcome="live")
        path = f"{self.directory}/{log_id:x}.log"
        try:
            ledgers = read_map(path)
            result.file_bytes = os.stat(path).st_size
        except FileNotFoundError:
            return STOPPED._replace(outcome="gone")
        except OSError:
            return STOPPED._replace(outcome="unreadable")
        if ledgers is None or any(ledger_is_known(self.handle.store, ledger) for ledger in ledgers.ledgers.tolist()):
            self.live[log_id] = 0
            return self.collect(log_id, False)
        result.dropped_bytes = int(ledgers.bytes.sum())
        with nogil:
            status = remove_log(&self.compaction, log_id, repairs, &result)
        self.live.pop(log_id, None)
        self.check(status, f"removing log {log_id:x}")
        return self.collected(&result)

    def finish(self):
        """Close the compaction log; the next compaction begins another. OSError if a write failed, which is fatal."""
        cdef Status status
        self.need()
        with nogil:
            status = compaction_finish(&self.compaction)
        if status != NO_SPACE:
            self.check(status, "closing the compaction log")

    def set_rate(self, int64_t bytes_per_s):
        if bytes_per_s < 0:
            raise ValueError(f"the rate is {bytes_per_s} bytes a second; it must be at least 0, which means no limit")
        pace_set_rate(&self.compaction.pace, bytes_per_s)

    def pause(self):
        pace_pause(&self.compaction.pace, True)

    def resume(self):
        pace_pause(&self.compaction.pace, False)

    def stop(self):
        self.stopped = True
        pace_stop(&self.compaction.pace)

    def progress(self):
        return {
            "log_id": bk_load(&self.compaction.progress.log_id),
            "log_bytes": bk_load(&self.compaction.progress.log_bytes),
            "log_done": bk_load(&self.compaction.progress.log_done),
            "moved_bytes": bk_load(&self.compaction.progress.moved_bytes),
            "dropped_bytes": bk_load(&self.compaction.progress.dropped_bytes),
            "logs_unlinked": bk_load(&self.compaction.progress.logs_unlinked),
            "bytes_unlinked": bk_load(&self.compaction.progress.bytes_unlinked),
            "rate": self.compaction.pace.rate,
            "paused": int(self.compaction.pace.paused),
        }
