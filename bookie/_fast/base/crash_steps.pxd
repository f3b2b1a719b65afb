"""Where crash tests end the process, or hold a thread: between any two steps that must follow each other. Two compares
otherwise.

Any thread. The steps of a checkpoint are its own (1 to 8); those of its records of ledgers, of collection, of carrying
over, and of entry logs that begin and end, stand here.
"""
from libc.stdint cimport int64_t

cdef enum CollectStep:
    STEP_COPIED = 21             # survivors of a log are appended, not synced
    STEP_COPY_SYNCED = 22
    STEP_COPY_INDEXED = 23       # the commit is done, the source is still there
    STEP_UNLINKED = 24
    STEP_DELETE_COMMITTED = 31   # ledgers left the index, memory still has them
    STEP_DELETE_FORGOTTEN = 32

cdef enum RotationStep:
    STEP_LOG_CREATED = 41        # its name is there, nothing else
    STEP_LOG_PUBLISHED = 42      # `lastId` covers it, and its name lasts
    STEP_MAP_WRITTEN = 43
    STEP_MAP_SYNCED = 44
    STEP_HEADER_WRITTEN = 45
    STEP_HEADER_SYNCED = 46

cdef enum LedgersStep:
    STEP_LEDGER_PUT = 51         # a record of a ledger is in the open transaction, others are not

cdef enum RepairStep:
    STEP_SALVAGED = 61           # a new index holds what could be read of the old one, beside it
    STEP_INDEX_RENAMED = 62      # it has the old one's name
    STEP_RENAME_SYNCED = 63
    STEP_INDEX_REPLACED = 64     # readers go on with it; ledgers that lost runs are in doubt
    STEP_FOUND_COMMITTED = 65    # what entry logs had of some of them is in the index

cdef enum CarryStep:
    STEP_CARRYING = 71           # some of what a directory has in memory is journaled again
    STEP_CARRIED = 72            # all of it is, and synced; the mark is the old one
    STEP_CARRY_MARKED = 73       # the mark is the new one, older journal files are there

cdef void step(int64_t reached) noexcept nogil
