"""Putting runs into the index, at once or in slices.

A flush that has little of each of many ledgers would write a page of the index for each of them, several times the
bytes of their entries. So it puts the runs of a slice of the ledgers only, a sixteenth at least, together with all
that wait of these (module index.pending); those of the others wait. In a turn of up to sixteen flushes each ledger is
put once, with the runs of all of them. A turn has a limit of bytes, too, since a start after a crash replays what was
flushed in it.

What this means for the rest of the bookie:

- A run that waits is in no index, so a crash must bring its entries back from the journal: a **mark** that was noted
  before a flush is written when all shards have been put after that flush (turn_mark_due).
- An **entry log** that runs point into is open until they are in the index: the same count settles it.
- Explicit and timed checkpoints, and those that a long journal causes, put everything, in transactions of bounded size.
- Pending runs take bounded memory. If a flush fails, its own runs do not wait, and it is repeated as a whole.

`Store.writing` is held by all functions that put.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.by_ledger cimport LEDGER_SHARDS
from bookie._fast.base.types cimport Status
from bookie._fast.index.codec cimport IndexRun
from bookie._fast.index.pending cimport PendingBatch
from bookie._fast.store.index_turn cimport NotedMark
from bookie._fast.store.stores cimport Store

cdef enum:
    SLICE_SHARDS = 4             # of LEDGER_SHARDS

cdef struct Staged:
    # The runs that a flush has appended.
    PendingBatch* batches[LEDGER_SHARDS]
    uint32_t ledgers
    int64_t last                 # ledger
    uint32_t runs                # of the last ledger
    bint at_once                 # so many that they are put into the transaction that is open, and not staged
    int64_t* put                 # the ledgers of which this is true, ascending
    uint32_t put_count
    uint32_t put_room

# Add a run of the last ledger, or of a greater one, while a transaction of the index is open. Returns what a put does.
cdef Status stage_run(Store* store, Staged* staged, const IndexRun* run) noexcept nogil
cdef void staged_free(Staged* staged) noexcept nogil
# Return how many shards a flush of `bytes` puts; LEDGER_SHARDS if none of its runs is to wait.
cdef uint32_t slice_of(const Store* store, const Staged* staged, uint64_t bytes) noexcept nogil

# Put the changed ledgers, and the pending and staged runs of the next `shards` shards or of fewer, if these are many
# ledgers, in the transaction of the index that is open, which this ends. After OK, the other staged runs are pending,
# and nothing is staged. Otherwise nothing has changed.
cdef Status put_flushed(Store* store, Staged* staged, uint32_t shards) noexcept nogil
# Put pending runs only, in a transaction of their own.
cdef Status put_pending(Store* store, uint32_t shards) noexcept nogil
# Return whether memory is short for further runs.
cdef bint too_many_wait(const Store* store) noexcept nogil

# Note the mark of a checkpoint that begins.
cdef void turn_note_mark(Store* store, const int64_t* ids, const uint64_t* offsets) noexcept nogil
# Take the newest noted mark before which everything is in the index, and forget older ones. Return NULL if there is
# none. It is valid until the next call.
cdef const NotedMark* turn_mark_due(Store* store) noexcept nogil
# Forget the noted marks, as a checkpoint failed.
cdef void turn_forget_marks(Store* store) noexcept nogil
