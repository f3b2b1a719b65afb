"""Moves the live records of a closed entry log to the directory's compaction log, and removes the log.

One thread for each Compaction (the garbage collection's); any thread may use pace and progress. Memory: the scan's
window, the writer's buffer, 64 remembered runs, and MOVES_MOST stretches. Copies are synced before the index points at
them, and indexed before the source is removed; a crash between any two of these steps leaves copies to which nothing
points, which the next collection finds dead.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.pace cimport Pace
from bookie._fast.base.types cimport Status
from bookie._fast.entrylog.writer cimport EntryLogWriter, LogBuffer
from bookie._fast.index.location cimport IndexReader
from bookie._fast.index.table cimport Moved
from bookie._fast.store.gc.liveness cimport Liveness
from bookie._fast.store.stores cimport Storage, Store

cdef enum:
    MOVES_MOST = 16384           # stretches, and
    MOVED_BYTES_MOST = 0x10000000    # bytes that may wait for one sync and one commit
    STRETCH_BYTES_MOST = 0x80000     # appended at once, so that a journal's write does not wait long behind it
    WALK_RUNS = 4096             # runs of the index in one read transaction

cdef enum Outcome:
    COLLECT_UNLINKED
    COLLECT_GONE
    COLLECT_OPEN
    COLLECT_LIVE
    COLLECT_ORPHANS
    COLLECT_TORN
    COLLECT_DISAGREES
    COLLECT_NO_SPACE
    COLLECT_UNREADABLE
    COLLECT_STOPPED
    COLLECT_QUARANTINED
    COLLECT_REPAIRED

cdef struct Result:
    Outcome outcome
    uint64_t moved_records
    uint64_t moved_bytes         # copied and indexed
    uint64_t dropped_records
    uint64_t dropped_bytes
    uint64_t file_bytes
    uint64_t indexed_bytes       # of runs that now point at the copy
    int64_t torn_at              # -1 if it is not torn
    int64_t ledger               # of the record that caused the outcome; -1 if there is none
    int64_t entry
    uint64_t offset

cdef struct Progress:
    # Atomic.
    int64_t log_id               # -1 between logs
    int64_t log_bytes
    int64_t log_done
    int64_t moved_bytes          # since the start, like the fields below
    int64_t dropped_bytes
    int64_t logs_unlinked
    int64_t bytes_unlinked

cdef struct Compaction:
    Storage* stores
    Store* store
    Pace pace
    LogBuffer* buffer
    EntryLogWriter* writer       # its log outlives a compaction, because small logs share one
    IndexReader* reader
    Liveness liveness
    Moved* moves                 # stretches that are appended and not indexed
    uint32_t move_count
    uint64_t move_bytes
    uint64_t move_records
    Moved stretch                # being collected; `bytes` 0 if there is none
    uint64_t stretch_records
    const uint8_t* data          # of the stretch, in the scan's window
    Progress progress
    int64_t repairs              # of the index, when the scan began

# Initialise a zeroed Compaction. Return OK, NO_MEMORY or IO_ERROR (no index reader). Free it whatever the result.
cdef Status compaction_init(Compaction* compaction, Storage* stores, Store* store) noexcept nogil
cdef void compaction_free(Compaction* compaction) noexcept nogil
# Scan a closed log. With `move`, copy and index live records; without, stop at the first one (COLLECT_LIVE). The log
# is removed if the index does not point into it any more: `live_bytes` is what it pointed at in a walk that began
# after the log was closed, or -1 to have the index walked. Return OK with `result`; IO_ERROR or CORRUPT if the index
# cannot be read or written.
cdef Status collect_log(Compaction* compaction, uint32_t log_id, bint move, int64_t live_bytes,
                        Result* result) noexcept nogil
# Remove a log. The caller knows that nothing in it was needed when so many repairs had replaced the index. After a
# further one, which may have lost what pointed elsewhere, the log stays: COLLECT_REPAIRED.
cdef Status remove_log(Compaction* compaction, uint32_t log_id, int64_t repairs, Result* result) noexcept nogil
# Close the compaction log. NO_SPACE: it was closed without a map.
cdef Status compaction_finish(Compaction* compaction) noexcept nogil
# Find out whether the index has a record that ends after `offset` in the log. Return OK, or why it cannot be read.
cdef Status points_into(IndexReader* reader, uint32_t log_id, uint64_t offset, bint* found) noexcept nogil
