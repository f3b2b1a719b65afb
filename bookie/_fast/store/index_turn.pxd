"""How far the runs of a directory are on their way into the index. State only; module store.index_slices explains it.

Of the thread that flushes the directory, except for what is set at start.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.bounds cimport DIRECTORIES_MAX

cdef enum:
    NOTED_MOST = 18              # marks; more than the slices of a turn

cdef struct NotedMark:
    int64_t shards_put           # the count when the mark was noted
    int64_t[DIRECTORIES_MAX] ids
    uint64_t[DIRECTORIES_MAX] offsets

cdef struct IndexTurn:
    int64_t shards_put           # how many shards of pending runs were put into the index since the start
    int64_t pending_most         # constant; the memory of pending runs
    int64_t bytes                # constant; entries that are flushed in a turn
    uint64_t leaves              # constant; of the index, that a transaction changes, about
    uint32_t ledgers_least       # constant; flushes of fewer ledgers put all runs at once; 0: all flushes do
    uint32_t slice               # how many shards the last flush was to put
    NotedMark[NOTED_MOST] noted  # marks that were not written yet, oldest first
    uint32_t noted_count
    NotedMark due                # the last one that was taken
