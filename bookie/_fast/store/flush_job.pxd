"""What a directory's flusher is to do, and how it ended. State only; module store.flushers explains it."""
from libc.stdint cimport int64_t, uint64_t

from bookie._fast.base.bounds cimport DIRECTORIES_MAX
from bookie._fast.base.sync cimport pthread_cond_t, pthread_mutex_t
from bookie._fast.base.types cimport Status

cdef struct FlushJob:
    int64_t room_wanted          # atomic; 1: adds want the halves swapped. A checkpoint resets it, and then the swap
    # Written by the thread that gives the jobs, while there is none.
    int64_t mark_ids[DIRECTORIES_MAX]        # of a checkpoint: how far each journal was synced when it began
    uint64_t mark_offsets[DIRECTORIES_MAX]
    # `lock` guards what follows.
    pthread_mutex_t lock
    pthread_cond_t changed
    void* work                   # of type FlushWork; NULL when the flusher has taken it
    bint served                  # a flusher waits for jobs
    bint busy                    # from when a job is given until it is done
    Status status                # of the last job
