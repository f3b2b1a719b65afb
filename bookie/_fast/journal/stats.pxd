"""The counters of a journal. Its committer adds to them; Python reads them."""
from libc.stdint cimport int64_t

from bookie._fast.base.op_stats cimport OpStats

cdef struct JournalStats:
    int64_t groups
    int64_t entries
    int64_t bytes
    int64_t sync_ns
    int64_t flush_empty          # groups closed because the queue was empty; the wait was over; the group was full
    int64_t flush_wait
    int64_t flush_bytes

cdef struct JournalOps:
    # Written under `commit_lock`; times in nanoseconds.
    OpStats queued               # from a group's first record to the beginning of its write
    OpStats write
    OpStats sync
    OpStats created              # changing to a new file
    OpStats group_entries
    OpStats group_bytes
