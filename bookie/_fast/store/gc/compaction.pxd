"""Moving what lives in a closed entry log to the directory's compaction log, and removing the log.

One thread a Compaction (the one that collects garbage); pace and progress are anybody's. Memory: the scan's window, the
writer's buffer, 64 remembered runs, MOVES_MOST stretches.
What is copied is synced before the index points at it, and indexed before the source goes; a crash between any two of
these leaves copies that nothing points into, which the next collection finds dead.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.pace cimport Pace
from bookie._fast.base.types cimport Status
from bookie._fast.entrylog.writer cimport EntryLogWriter, LogBuffer
from bookie._fast.index.location cimport IndexReader
from bookie._fast.index.table cimport Moved
from bookie._fast.store.gc.liveness cimport Liveness
from bookie._fast.store.stores cimport Store, Storage

cdef enum:
    MOVES_MOST = 16384           # stretches, and
    MOVED_BYTES_MOST = 0x10000000    # bytes that wait for one sync and one commit
    STRETCH_BYTES_MOST = 0x80000     # appended at once: a journal's write does not wait long behind it
    WALK_RUNS = 4096             # of the index, a read transaction

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

cdef struct Result:
    Outcome outcome
    uint64_t moved_records
    uint64_t moved_bytes         # copied and indexed
    uint64_t dropped_records
    uint64_t dropped_bytes
    uint64_t file_bytes
    uint64_t indexed_bytes       # of runs that were pointed at the copy
    int64_t torn_at              # -1: not torn
    int64_t ledger               # of the record that the outcome is about; -1 none
    int64_t entry
    uint64_t offset

cdef struct Progress:
    # atomics
    int64_t log_id               # -1 between logs
    int64_t log_bytes
    int64_t log_done
    int64_t moved_bytes          # since the start, like the rest
    int64_t dropped_bytes
    int64_t logs_unlinked
    int64_t bytes_unlinked

cdef struct Compaction:
    Storage* stores
    Store* store
    Pace pace
    LogBuffer* buffer
    EntryLogWriter* writer       # its log outlives a compaction: small logs share one
    IndexReader* reader
    Liveness liveness
    Moved* moves                 # appended, not indexed
    uint32_t move_count
    uint64_t move_bytes
    uint64_t move_records
    Moved stretch                # being gathered: `bytes` 0 none
    uint64_t stretch_records
    const uint8_t* data          # of the stretch, in the scan's window
    Progress progress

# NO_MEMORY, IO_ERROR (no reader) or OK. `compaction` is zeroed; free it whatever the answer.
cdef Status compaction_init(Compaction* compaction, Storage* stores, Store* store) noexcept nogil
cdef void compaction_free(Compaction* compaction) noexcept nogil
# Scan a closed log; with `move`, copy and index what is live, else end at it (COLLECT_LIVE). The log is removed when
# the index points nowhere into it: `live_bytes` is what it pointed at by a walk that began after the log was closed, -1
# unknown (then the index is walked). OK with `result`; IO_ERROR and CORRUPT: the index cannot be asked or written.
cdef Status collect_log(Compaction* compaction, uint32_t log_id, bint move, int64_t live_bytes,
                        Result* result) noexcept nogil
# Remove a log of which the caller knows that nothing in it is needed.
cdef Status remove_log(Compaction* compaction, uint32_t log_id, Result* result) noexcept nogil
# Close the compaction log. NO_SPACE: given up without a map.
cdef Status compaction_finish(Compaction* compaction) noexcept nogil
# OK with whether a run reaches behind `offset` in the log, or why the index cannot be asked.
cdef Status points_into(IndexReader* reader, uint32_t log_id, uint64_t offset, bint* found) noexcept nogil
