"""Points at which crash tests end the process or hold a thread: between any two steps whose order matters.

A step that no test has chosen costs two comparisons. Any thread.
"""
from libc.stdint cimport int64_t

cdef enum CheckpointStep:
    STEP_MARKED = 1              # the journals' positions are recorded
    STEP_SWAPPED = 2             # this and the following ones up to 6 in each directory, at the same time
    STEP_APPENDED = 3
    STEP_LOG_SYNCED = 4
    STEP_INDEX_COMMITTED = 5
    STEP_CLEARED = 6
    STEP_MARK_WRITTEN = 7        # in all directories
    STEP_TRIMMED = 8

cdef enum CollectStep:
    STEP_COPIED = 21             # the live entries of a log have been appended to a new log, not synced
    STEP_COPY_SYNCED = 22
    STEP_COPY_INDEXED = 23       # the index transaction is committed, the source still exists
    STEP_UNLINKED = 24
    STEP_DELETE_COMMITTED = 31   # the ledgers have left the index, but not the memory
    STEP_DELETE_FORGOTTEN = 32

cdef enum RotationStep:
    STEP_LOG_CREATED = 41        # the file exists and is empty
    STEP_LOG_PUBLISHED = 42      # `lastId` covers the log, and its directory entry is durable
    STEP_MAP_WRITTEN = 43
    STEP_MAP_SYNCED = 44
    STEP_HEADER_WRITTEN = 45
    STEP_HEADER_SYNCED = 46

cdef enum LedgersStep:
    STEP_LEDGER_PUT = 51         # one ledger's record is in the open transaction, others are not yet

cdef enum RepairStep:
    STEP_SALVAGED = 61           # a new index next to the old one holds what could be read from the old one
    STEP_INDEX_RENAMED = 62      # the new index has the old one's name
    STEP_RENAME_SYNCED = 63
    STEP_INDEX_REPLACED = 64     # readers use the new index; ledgers that lost runs are in doubt
    STEP_FOUND_COMMITTED = 65    # runs found in entry logs are in the index, for some of these ledgers

cdef enum CarryStep:
    STEP_CARRYING = 71           # some of a directory's entries in memory are in the journal again
    STEP_CARRIED = 72            # all of them are, and synced; the mark is the old one
    STEP_CARRY_MARKED = 73       # the mark is the new one, the older journal files still exist

cdef void step(int64_t reached) noexcept nogil
