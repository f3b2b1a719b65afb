"""The state of a bookie's directories on the data path, owned by `storage`; each field says what guards it. A shard's
lock guards ledgers and runs and so orders adds and fences. It is held for copies, never while the disk works."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.bounds cimport DIRECTORIES_MAX
from bookie._fast.base.by_ledger cimport LEDGER_SHARDS, ledger_shard
from bookie._fast.base.file cimport FileOps
from bookie._fast.base.sync cimport pthread_cond_t, pthread_mutex_t
from bookie._fast.base.waker cimport Waker
from bookie._fast.cache.read cimport ReadRing
from bookie._fast.cache.readahead cimport Readahead
from bookie._fast.cache.readers cimport Readers
from bookie._fast.cache.runs cimport RunMap
from bookie._fast.cache.stats cimport CacheStats
from bookie._fast.cache.uncached cimport Uncached
from bookie._fast.cache.write cimport Half
from bookie._fast.entrylog.ids cimport LogIds
from bookie._fast.entrylog.set cimport LogSet
from bookie._fast.entrylog.writer cimport EntryLogReaders
from bookie._fast.index.location cimport LocationIndex
from bookie._fast.journal.backlog cimport StoreBacklog
from bookie._fast.journal.state cimport Journal
from bookie._fast.store.failed_reads cimport FailedReads
from bookie._fast.store.flush_job cimport FlushJob
from bookie._fast.store.index_turn cimport IndexTurn
from bookie._fast.store.kept_list cimport KeptHalves, KeptMaps
from bookie._fast.store.ledger_counts cimport LedgerCounts
from bookie._fast.store.ledger_table cimport LedgerMap
from bookie._fast.store.notices cimport BOARD_MOST, NoticeBoard
from bookie._fast.store.stats cimport StoreOps, StoreStats

cdef enum:
    SHARDS = LEDGER_SHARDS
    STORES_MOST = DIRECTORIES_MAX

cdef struct Shard:
    pthread_mutex_t lock
    LedgerMap ledgers
    RunMap halves[2]
    KeptMaps kept
    RunMap cached
    Readers readers

cdef struct Store:
    Shard shards[SHARDS]
    LedgerCounts ledgers
    Half halves[2]
    KeptHalves kept
    int64_t active               # atomic; the half that takes adds
    int64_t overrides            # atomic; incremented when cached reads of an overwritten entry may be stale
    int64_t spare_clean          # atomic; 1: the inactive half is flushed, and is or gets empty when it is swapped in
    int64_t spare_read           # atomic; 1: it is flushed and out of the maps, but responses may still refer to it
    ReadRing ring
    LocationIndex* index
    pthread_mutex_t writing      # held with the index's transaction, and to remove ledgers; before a shard's lock
    LogIds* ids                  # for all entry log writers of this directory
    LogSet* log                  # what a flush appends to; of the thread that flushes
    FlushJob job
    IndexTurn turn
    EntryLogReaders* logs
    uint64_t log_bytes_max
    const char* directory        # `current`; owned by the DirectoryStore
    StoreBacklog backlog
    int64_t no_space             # atomic; the last flush or mark found no space: adds are refused
    int64_t lagging              # atomic; a full disk interrupted its replay: no adds, and its mark stays
    int64_t held                 # atomic; full by the disk monitor: only recovery adds, if `high_priority_ok`
    int64_t put_off_for          # atomic; why the last flush failed, for the log: a Status, or 0
    StoreStats stats
    StoreOps ops
    FailedReads failed_reads
    CacheStats cache
    Readahead ahead

cdef struct Storage:
    Store* stores[STORES_MOST]   # ledger L belongs to store L mod count and to journal L mod journal_count
    Journal* journals[STORES_MOST]
    uint32_t count, journal_count
    FileOps* ops
    bint write_data, stopping    # entries are journaled; with `flush_lock`: the flush thread is to end
    int64_t read_only, forced_read_only      # atomic; the latter by the operator, or by the disk monitor
    int64_t disk_full            # atomic; in some store the last checkpoint found no space
    int64_t any_full, high_priority_ok       # atomic; one full store suffices for read-only; recovery adds fit anyway
    int64_t generation, flush_bytes      # of the last marks, the flush thread's; bytes in a half when it is swapped
    pthread_mutex_t flush_lock   # for the two conditions and the requests
    pthread_cond_t flush_wanted, flush_done
    int64_t flush_requests, flush_served, flush_succeeded    # for checkpoints of everything: the last, by number
    Waker* loops[BOARD_MOST]     # woken when a half was freed or pinned regions are wanted
    int loop_count
    NoticeBoard board            # long polls, by loop
    Uncached uncached            # reads that no ring can take at the moment
    int64_t unpin_wanted         # atomic; incremented for each region that becomes `wanted`: loops check their pins

cdef inline Store* store_of(Storage* stores, int64_t ledger) noexcept nogil:
    return stores.stores[<uint64_t> ledger % stores.count]

cdef inline Journal* journal_of(Storage* stores, int64_t ledger) noexcept nogil:
    return stores.journals[<uint64_t> ledger % stores.journal_count]

cdef inline Shard* shard_of(Store* store, int64_t ledger) noexcept nogil:
    return &store.shards[ledger_shard(ledger)]
