"""Runs that were appended to entry logs and wait in memory for being put into the index.

If a flush has few entries of each of many ledgers, putting their runs would write a page of the index for each ledger.
So the runs of most of these ledgers wait until there are several of each (module store.index_slices). Until then the
journal keeps their entries, and look-ups find them here: a look-up asks here first, because a run leaves only when the
index has it.

The ledgers are divided into LEDGER_SHARDS by hash, as in store.stores. Of each flush, a shard has one batch: an array
in ascending order of ledgers and entries. The lock of a shard guards its batches; only the thread that writes to the
index changes anything, so it reads without the locks. Nothing is allocated, moved or freed run by run.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.by_ledger cimport LEDGER_SHARDS
from bookie._fast.base.sync cimport pthread_mutex_t
from bookie._fast.base.types cimport Status
from bookie._fast.index.codec cimport IndexRun
from bookie._fast.index.hit cimport IndexHit

ctypedef Status (*pending_fn)(void* context, const IndexRun* run) noexcept nogil

cdef struct PendingRun:
    int64_t ledger
    int64_t first
    uint64_t offset
    uint32_t log_id
    uint32_t count               # slots; the first and the last one are not 0. 0: the run was removed
    uint32_t lengths_at          # of the first slot in the lengths of the batch

cdef struct PendingBatch:
    # Runs of one flush, which do not overlap. They replace entries of earlier batches.
    PendingBatch* later
    PendingRun* runs
    uint32_t count
    uint32_t room
    uint32_t* lengths
    uint32_t lengths_count
    uint32_t lengths_room

cdef struct PendingShard:
    pthread_mutex_t lock
    PendingBatch* earliest
    PendingBatch* latest

cdef struct Pending:
    PendingShard[LEDGER_SHARDS] shards
    int64_t runs                 # atomic; those that were not removed
    int64_t entries              # atomic; of these
    int64_t bytes                # atomic; the memory of all batches

cdef void pending_init(Pending* pending) noexcept nogil
cdef void pending_free(Pending* pending) noexcept nogil

# Append a run of the last ledger, or of a greater one, to a batch, which is created if it is NULL. Return False if
# there is no memory.
cdef bint batch_append(PendingBatch** batch, const IndexRun* run) noexcept nogil
cdef void batch_free(PendingBatch* batch) noexcept nogil
# Return the place of the first run of `ledger`, or of a greater one.
cdef uint32_t batch_find(const PendingBatch* batch, int64_t ledger) noexcept nogil
# Describe a run as the index takes it; valid as long as the batch.
cdef void batch_describe(const PendingBatch* batch, uint32_t at, IndexRun* out) noexcept nogil

# Show a batch to look-ups, behind those that the shard has already, which owns it from now on.
cdef void pending_publish(Pending* pending, uint32_t shard, PendingBatch* batch) noexcept nogil
# Remove the runs of a ledger.
cdef void pending_remove(Pending* pending, int64_t ledger) noexcept nogil
# Free all batches of a shard.
cdef void pending_drop(Pending* pending, uint32_t shard) noexcept nogil

# Find the first entry with id >= `entry`, in its latest copy. Any thread. Return False if there is none.
cdef bint pending_seek(Pending* pending, int64_t ledger, int64_t entry, IndexHit* hit) noexcept nogil
# Return the ledger's last entry, or -1. Any thread.
cdef int64_t pending_last(Pending* pending, int64_t ledger) noexcept nogil
# Pass each run of a ledger, in order of their flushes, with the shard's lock held. Any result but OK ends it and is
# the result. Any thread.
cdef Status pending_each(Pending* pending, int64_t ledger, pending_fn each, void* context) noexcept nogil
