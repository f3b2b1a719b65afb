"""Putting runs into the index, at once or in slices.

A flush that has little of each of many ledgers would write a page of the index for each of them, several times the
bytes of their entries. So it puts the runs of a sixteenth of the ledgers only, together with all that wait of these
(module index.pending); those of the others wait. After sixteen flushes all have had their turn, and each page was
written once with the runs of sixteen flushes.

What this means for the rest of the bookie:

- A run that waits is in no index, so a crash must bring its entries back from the journal: a **mark** that was noted
  before a flush is written when all shards have been put after that flush (turn_mark_due).
- An **entry log** that runs point into is open until they are in the index: the same count settles it.
- Explicit and timed checkpoints, and those that a long journal causes, put everything, in transactions of bounded size.
- Pending runs take bounded memory. If a flush fails, its own runs do not wait, and it is repeated as a whole.

`Store.writing` is held by all functions that put.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.index.codec cimport IndexRun
from bookie._fast.index.pending cimport PENDING_SHARDS, PendingBatch
from bookie._fast.store.index_turn cimport NotedMark
from bookie._fast.store.stores cimport Store

cdef enum:
    SLICE_SHARDS = 4             # of PENDING_SHARDS

cdef struct Staged:
    # The runs that a flush has appended.
    PendingBatch* batches[PENDING_SHARDS]
    int64_t last                 # ledger
    uint32_t ledgers

# Add a run of the last ledger, or of a greater one. OK or NO_MEMORY.
cdef Status stage_run(Staged* staged, const IndexRun* run) noexcept nogil
cdef void staged_free(Staged* staged) noexcept nogil
# Return whether runs of a flush of `bytes` are to wait.
cdef bint may_wait(const Store* store, const Staged* staged, uint64_t bytes) noexcept nogil

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
