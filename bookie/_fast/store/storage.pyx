"""Opening one ledger directory, and all of a bookie's: caches, index and entry logs."""
cimport cython
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

import os

import numpy

from bookie._fast.cache.memory cimport region_unmap
from bookie._fast.cache.readahead import POLICIES

from bookie._fast.base.bounds cimport LAC_PACKET_MIN, valid_lac
from bookie._fast.base.cursor cimport load_i64
from bookie._fast.base.file cimport Files, sync_dir
from bookie._fast.base.op_stats cimport op_view
from bookie._fast.base.sync cimport (
    bk_add,
    bk_exchange,
    bk_load,
    bk_store,
    cond_init,
    now_ns,
    pthread_cond_signal,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)
from bookie._fast.base.types cimport (
    NO_MEMORY,
    OK,
)
from bookie._fast.base.waker cimport waker_wake
from bookie._fast.cache.pages cimport Page
from bookie._fast.cache.read cimport ring_free, ring_init, ring_set_segment
from bookie._fast.cache.readahead cimport readahead_evicted, readahead_init, readahead_limits
from bookie._fast.cache.rereads cimport rereads_free, rereads_init
from bookie._fast.cache.runs cimport (
    LedgerRuns,
    map_find,
    map_free,
    map_init,
    map_init_slabs,
    map_remove,
    runs_drop_page,
)
from bookie._fast.cache.stats cimport cache_counts, cache_ops, note_evicted
from bookie._fast.cache.write cimport half_init
from bookie._fast.entrylog.ids cimport log_ids, log_ids_free, log_ids_least_open, log_ids_next, log_ids_open_count
from bookie._fast.entrylog.set cimport log_set, log_set_counts, log_set_free, log_set_stats
from bookie._fast.entrylog.writer cimport readers_free, readers_new
from bookie._fast.index.codec cimport BAD_LAC, QuarantineReason
from bookie._fast.index.location cimport (
    IndexReader,
    LedgerRecord,
    index_close,
    index_each_fence,
    index_each_ledger,
    index_open,
    index_read_through,
    index_reader,
    index_reader_free,
)
from bookie._fast.index.view cimport index_failure
from bookie._fast.journal.commit cimport JournalCommitter
from bookie._fast.journal.files cimport journal_bytes_since
from bookie._fast.store.failed_reads cimport failed_reads_init, failed_reads_take
from bookie._fast.store.kept_list cimport KEPT_MOST, REGIONS_MOST
from bookie._fast.store.ledger_counts cimport FENCES_CLOCK
from bookie._fast.store.ledger_table cimport (
    Ledger,
    ledger_add,
    ledger_keep_fence,
    ledger_quarantine,
    ledger_set_lac,
    ledgers_free,
    ledgers_init,
)
from bookie._fast.store.stats cimport StoreOps
from bookie._fast.store.stores cimport SHARDS, STORES_MOST, Shard, shard_of, store_of


cdef void stores_judge_space(Storage* stores) noexcept nogil:
    cdef uint32_t i
    cdef bint all_full = True
    pthread_mutex_lock(&stores.flush_lock)       # the last caller has seen all changes that led to it
    for i in range(stores.count):
        all_full = all_full and bk_load(&stores.stores[i].no_space)
    bk_store(&stores.read_only, bk_load(&stores.forced_read_only) or all_full
             or (bk_load(&stores.disk_full) and bk_load(&stores.any_full)))
    pthread_mutex_unlock(&stores.flush_lock)


cdef void stores_request_flush(Storage* stores) noexcept nogil:
    pthread_mutex_lock(&stores.flush_lock)
    stores.flush_requests += 1
    pthread_cond_signal(&stores.flush_wanted)
    pthread_mutex_unlock(&stores.flush_lock)


cdef void store_request_room(Storage* stores, Store* store) noexcept nogil:
    if bk_exchange(&store.job.room_wanted, 1):
        return
    pthread_mutex_lock(&stores.flush_lock)
    pthread_cond_signal(&stores.flush_wanted)
    pthread_mutex_unlock(&stores.flush_lock)


cdef void stores_want_back(Storage* stores, Region* region) noexcept nogil:
    cdef int i
    if bk_load(&region.wanted):
        return
    bk_store(&region.wanted, 1)              # before the loops are told
    bk_add(&stores.unpin_wanted, 1)
    for i in range(stores.loop_count):
        waker_wake(stores.loops[i])


cdef void ring_want_back(void* context, Region* region) noexcept nogil:
    stores_want_back(<Storage*> context, region)


cdef void ring_drop(void* context, Page* page) noexcept nogil:
    """Evict a page. Called with the ring's lock, which is never taken while holding a shard's."""
    cdef Store* store = store_of(<Storage*> context, page.ledger)
    cdef Shard* shard = shard_of(store, page.ledger)
    cdef LedgerRuns* runs
    cdef uint64_t unused
    pthread_mutex_lock(&shard.lock)
    page.live = False
    if not page.shown:           # it went stale during its read, or is still being read
        pthread_mutex_unlock(&shard.lock)
        return
    unused = note_evicted(&store.cache, page)
    runs = map_find(&shard.cached, page.ledger)
    if runs != NULL:
        runs_drop_page(runs, page)
        if runs.count == 0:
            map_remove(&shard.cached, page.ledger)
    pthread_mutex_unlock(&shard.lock)
    readahead_evicted(&store.ahead, page.setting, page.used, unused)


cdef Status load_ledger(void* context, const LedgerRecord* record) noexcept nogil:
    cdef Store* store = <Store*> context
    cdef Shard* shard = shard_of(store, record.ledger)
    cdef Ledger* ledger = ledger_add(&shard.ledgers, record.ledger, record.key, record.key_size)
    if ledger == NULL:
        return NO_MEMORY
    ledger.fenced = record.fenced
    ledger.limbo = record.limbo
    ledger_quarantine(&shard.ledgers, ledger, <QuarantineReason> record.quarantine)
    if record.lac_size and (record.lac_size < LAC_PACKET_MIN or load_i64(record.lac) != record.ledger):
        ledger_quarantine(&shard.ledgers, ledger, BAD_LAC)
    elif record.lac_size:
        if not ledger_set_lac(ledger, record.lac, record.lac_size):
            return NO_MEMORY
        ledger.lac = valid_lac(load_i64(record.lac + 8))
    return OK


cdef Status load_fence(void* context, int64_t ledger, int64_t deleted_ms) noexcept nogil:
    cdef Store* store = <Store*> context
    cdef Shard* shard = shard_of(store, ledger)
    if ledger == FENCES_CLOCK:
        store.ledgers.fences_ms = store.ledgers.fences_stored_ms = deleted_ms
        return OK
    return OK if ledger_keep_fence(&shard.ledgers, ledger, deleted_ms) else NO_MEMORY


@cython.no_gc_clear
cdef class DirectoryStore:
    """One ledger directory, opened: caches, index, entry logs. numpy owns the memory of the read cache."""

    def __cinit__(self):
        self.store = <Store*> calloc(1, sizeof(Store))
        if self.store == NULL:
            raise MemoryError
        for i in range(SHARDS):
            pthread_mutex_init(&self.store.shards[i].lock, NULL)
            if not (ledgers_init(&self.store.shards[i].ledgers, &self.store.ledgers)
                    and map_init_slabs(&self.store.shards[i].halves[0])
                    and map_init_slabs(&self.store.shards[i].halves[1])
                    and map_init(&self.store.shards[i].cached)):
                raise MemoryError
            for j in range(KEPT_MOST):
                if not map_init_slabs(&self.store.shards[i].kept.maps[j]):
                    raise MemoryError
        pthread_mutex_init(&self.store.writing, NULL)
        pthread_mutex_init(&self.store.job.lock, NULL)
        cond_init(&self.store.job.changed)
        failed_reads_init(&self.store.failed_reads)
        self.store.spare_clean = 1
        self.store.ledgers.known_most = self.store.ledgers.fences_most = INT64_MAX // 2
        self.store.ledgers.fences_since_ns = now_ns()

    def __init__(self, directory: str, index_directory: str, Files files, *, write_cache_bytes: int,
                 read_cache_bytes: int, read_segment_bytes: int, reread_table_bytes: int, index_map_bytes: int,
                 index_leaves: int, next_log_id: int, log_bytes_max: int, open_logs_max: int,
                 ledger_logs_max: int = 0, log_idle_ms_max: int = 300000):
        cdef Store* store = self.store
        cdef int error = 0
        cdef uint8_t[::1] view
        cdef uint64_t map_bytes = index_map_bytes
        cdef const char* path
        self.directory = directory
        self.files = files
        store.turn.slice = SHARDS
        store.turn.leaves = max(index_leaves, 1)
        for i in range(2):
            if not half_init(&store.halves[i], &store.kept.regions[i], write_cache_bytes // 2):
                raise MemoryError(f"cannot reserve {write_cache_bytes} bytes of write cache")
        segment = min(read_segment_bytes, read_cache_bytes // 2)
        count = max(2, read_cache_bytes // segment)
        if not ring_init(&store.ring, count, segment, ring_drop, ring_want_back, NULL):
            raise MemoryError
        if not rereads_init(&store.cache.rereads, reread_table_bytes):
            raise MemoryError(f"cannot reserve {reread_table_bytes} bytes for the table of rereads")
        self.segments = []
        for i in range(count):
            memory = numpy.empty(segment + 64, dtype=numpy.uint8)
            view = memory
            self.segments.append(memory)
            ring_set_segment(&store.ring, i, <uint8_t*> ((<uint64_t> &view[0] + 63) & ~<uint64_t> 63))
        encoded = index_directory.encode()
        path = encoded
        with nogil:
            store.index = index_open(path, map_bytes, &error)
        if store.index == NULL:
            raise index_failure(error, index_directory)
        index_read_through(store.index, files.ops)
        # LMDB syncs its file, but not its directory entry and that of its directory, which may both be new.
        for name in (index_directory, os.path.dirname(index_directory)):
            encoded = name.encode()
            error = sync_dir(files.ops, encoded)
            if error < 0:
                raise OSError(-error, "cannot sync the directory of the location index", name)
        self.encoded_directory = directory.encode()
        store.directory = self.encoded_directory
        store.log_bytes_max = log_bytes_max
        store.ids = log_ids(files.ops, store.directory, next_log_id)
        store.logs = readers_new(files.ops, store.directory, open_logs_max)
        if store.ids == NULL or store.logs == NULL:
            raise MemoryError
        store.log = log_set(store.ids, log_bytes_max, ledger_logs_max, <int64_t> log_idle_ms_max * 1000000)
        if store.log == NULL:
            raise MemoryError

    def load_ledgers(self) -> int:
        """Read the ledgers index into the shards; return their number. OSError if the index cannot be read."""
        cdef Store* store = self.store
        cdef IndexReader* reader
        cdef Status status
        with nogil:
            reader = index_reader(store.index)
            if reader != NULL:
                status = index_each_ledger(reader, load_ledger, store, True)
                if status == OK:
                    status = index_each_fence(reader, load_fence, store)
                index_reader_free(reader)
            else:
                status = NO_MEMORY
        if status != OK:
            raise OSError(5, "cannot read the ledgers index", self.directory)
        return self.ledger_count()

    def ledger_count(self) -> int:
        return bk_load(&self.store.ledgers.known)

    def fence_count(self) -> int:
        return bk_load(&self.store.ledgers.fences)

    def limit_ledgers(self, most: int) -> None:
        """Allow at most this many ledgers, and kept fences of deleted ones, from now on; existing ones stay.

        Call it after the journals are replayed, because what they hold was acknowledged.
        """
        bk_store(&self.store.ledgers.known_most, most)
        bk_store(&self.store.ledgers.fences_most, most)

    def keep_flushed(self, size: int) -> None:
        """Keep what is flushed from now on readable in memory. It takes at most `size` bytes, together with the half
        that is being flushed; half of the write cache is the most that is useful. Call it after the start.
        """
        bk_store(&self.store.kept.bytes_max, size)

    def put_in_slices(self, ledgers_least: int, size: int) -> None:
        """Let flushes of this many ledgers put a part of their runs into the index (module store.index_slices); 0: none
        does. Runs that wait take `size` bytes, together with those of one flush, and what is flushed until all are put
        is twice the write cache. Call it after the start, which puts each run once anyway.
        """
        self.store.turn.pending_most = size * 3 // 4
        self.store.turn.bytes = 4 * self.store.kept.regions[0].size
        self.store.turn.ledgers_least = ledgers_least

    def stats(self) -> dict[str, int]:
        cdef Store* store = self.store
        cdef int64_t oldest = -1
        logs = {}
        if store.log != NULL:
            oldest = log_ids_least_open(store.ids)
            logs = <dict> log_set_stats(store.log)[0]
            logs["several"] = bk_load(&log_set_counts(store.log).several)
        return {
            **<dict> store.stats,
            **{f"ledger_logs_{name}": count for name, count in logs.items()},
            "entry_logs_open": log_ids_open_count(store.ids) if store.log != NULL else 0,
            # Ids handed out since the oldest log that may still change.
            "entry_logs_behind": log_ids_next(store.ids) - oldest if oldest >= 0 else 0,
            "failed_reads": bk_load(&self.store.failed_reads.total),
            "ledgers": self.ledger_count(),
            "kept_fences": self.fence_count(),
            "quarantined_ledgers": sum(store.shards[i].ledgers.quarantined.count for i in range(SHARDS)),
            "write_cache_entries": bk_load(&store.halves[0].entries) + bk_load(&store.halves[1].entries),
            "write_cache_bytes": bk_load(&store.halves[0].bytes) + bk_load(&store.halves[1].bytes),
            "kept_bytes": bk_load(&store.kept.bytes),
            "index_pending_runs": bk_load(&store.index.pending.runs) if store.index != NULL else 0,
            "index_pending_bytes": bk_load(&store.index.pending.bytes) if store.index != NULL else 0,
            "read_cache_bytes": sum(store.ring.segments[i].used for i in range(store.ring.count)),
            "read_cache_evicted_segments": bk_load(&store.ring.evicted),
            **cache_counts(&store.cache),
            "readahead_shrunk": bk_load(&store.ahead.shrunk),
            "readahead_grown": bk_load(&store.ahead.grown),
        }

    def take_failed_reads(self) -> tuple[int, list[tuple[int, int]]] | None:
        """Return (failed reads since the last call, (ledger, entry) of the first ones), or None if there were none."""
        return failed_reads_take(&self.store.failed_reads)

    def ops(self) -> dict[str, OpView | tuple[OpView, OpView]]:
        """Return OpViews of times in ns of look-ups, disk reads, flushes and their parts, and of bytes of flushes.

        Those of flushes are pairs: failed, succeeded. While open, also the number of logs that each ended ledger took.
        """
        cdef StoreOps* ops = &self.store.ops
        views = {}
        if self.store.log != NULL:
            views["logs_per_ledger"] = op_view(&log_set_counts(self.store.log).noted)
        return {
            **cache_ops(&self.store.cache),
            "flush": (op_view(&ops.flush[0]), op_view(&ops.flush[1])),
            "flush_entrylog": (op_view(&ops.entry_log[0]), op_view(&ops.entry_log[1])),
            "flush_locations_index": (op_view(&ops.index[0]), op_view(&ops.index[1])),
            "flush_size": (op_view(&ops.size[0]), op_view(&ops.size[1])),
            "flush_readers": op_view(&ops.readers),
            **views,
        }

    def readahead(self) -> tuple[int, int]:
        """Return how many bytes and entries a miss reads now."""
        cdef uint64_t size
        cdef uint32_t entries, setting
        readahead_limits(&self.store.ahead, &size, &entries, &setting)
        return size, entries

    def close(self) -> None:
        """Close files and index, after the threads that used them have ended."""
        cdef Store* store = self.store
        log_set_free(store.log)
        store.log = NULL
        log_ids_free(store.ids)
        store.ids = NULL
        if store.logs != NULL:
            readers_free(store.logs)
            store.logs = NULL
        if store.index != NULL:
            index_close(store.index)
            store.index = NULL

    def __dealloc__(self):
        if self.store == NULL:
            return
        self.close()
        for i in range(SHARDS):
            ledgers_free(&self.store.shards[i].ledgers)
            map_free(&self.store.shards[i].halves[0])
            map_free(&self.store.shards[i].halves[1])
            map_free(&self.store.shards[i].cached)
            for j in range(KEPT_MOST):
                map_free(&self.store.shards[i].kept.maps[j])
        for i in range(REGIONS_MOST):
            region_unmap(&self.store.kept.regions[i])
        region_unmap(&self.store.kept.spare)
        ring_free(&self.store.ring)
        rereads_free(&self.store.cache.rereads)
        free(self.store)


@cython.no_gc_clear
cdef class StorageEngine:
    """All stores and journals of a bookie, as the data path sees them."""

    def __cinit__(self):
        self.stores = <Storage*> calloc(1, sizeof(Storage))
        if self.stores != NULL:
            self.stores.high_priority_ok = 1
            self.stores.any_full = 1
        if self.stores == NULL:
            raise MemoryError
        pthread_mutex_init(&self.stores.flush_lock, NULL)
        cond_init(&self.stores.flush_wanted)
        cond_init(&self.stores.flush_done)

    def __init__(self, list handles, list journals, Files files, *, write_data: bool, readahead_bytes: int,
                 readahead_entries: int, readahead_policy: str, adaptive_readahead: bool, flush_bytes: int,
                 uncached_bytes: int = 16 << 20):
        cdef Store* store
        if not 0 < len(handles) <= STORES_MOST or not 0 < len(journals) <= STORES_MOST:
            raise ValueError(f"{len(handles)} ledger and {len(journals)} journal directories; give 1 to {STORES_MOST}"
                             " of each")
        self.handles = handles
        self.journals = journals
        self.stores.count = len(handles)
        self.stores.journal_count = len(journals)
        self.stores.ops = files.ops
        self.stores.write_data = write_data
        self.stores.flush_bytes = flush_bytes
        self.stores.uncached.bytes_max = uncached_bytes
        for i, handle in enumerate(handles):
            self.stores.stores[i] = (<DirectoryStore> handle).store
            store = (<DirectoryStore> handle).store
            store.ring.context = self.stores
            readahead_init(&store.ahead, readahead_bytes, readahead_entries, POLICIES[readahead_policy],
                           adaptive_readahead, store.ring.segment_bytes // 2)
        for i, journal in enumerate(journals):
            self.stores.journals[i] = (<JournalCommitter> journal).journal

    def full(self) -> tuple[list[int], list[int]]:
        """Return (stores whose last flush or mark found no space, journals whose last group found none or whose
        backlog is at its limit): their adds are refused.
        """
        return (
            [i for i in range(self.stores.count) if bk_load(&self.stores.stores[i].no_space)],
            [i for i in range(self.stores.journal_count)
             if bk_load(&self.stores.journals[i].full) or bk_load(&self.stores.journals[i].backlog.at_limit)],
        )

    def uncached(self) -> dict[str, int]:
        """Return the bytes of reads outside the rings, and how many reads were refused for lack of them."""
        return {
            "uncached_read_bytes": bk_load(&self.stores.uncached.bytes),
            "uncached_reads_refused": bk_load(&self.stores.uncached.refused),
        }

    def held_back(self) -> list[tuple[int, int]]:
        """Return for each store (most bytes of a journal that wait for its mark, seconds since its mark last moved)."""
        cdef Store* store
        found = []
        for i in range(self.stores.count):
            store = self.stores.stores[i]
            since = [journal_bytes_since(self.stores.journals[j], bk_load(&store.backlog.marked[j]))
                     for j in range(self.stores.journal_count)]
            found.append((max(since), (now_ns() - bk_load(&store.backlog.marked_ns)) // 1000000000))
        return found

    def allow(self, *, high_priority: bool, any_full: bool, held: list[int]) -> None:
        """Set what the disks allow: recovery adds while read-only; whether one full store makes the bookie read-only;
        and which stores are full while the bookie is not read-only.
        """
        bk_store(&self.stores.high_priority_ok, high_priority)
        bk_store(&self.stores.any_full, any_full)
        for i in range(self.stores.count):
            bk_store(&self.stores.stores[i].held, i in held)

    def set_read_only(self, read_only: bool) -> None:
        """Force read-only mode, for the operator or the disks. A checkpoint without space also sets and clears it."""
        bk_store(&self.stores.forced_read_only, read_only)
        stores_judge_space(self.stores)

    def __dealloc__(self):
        free(self.stores)
