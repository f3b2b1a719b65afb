"""The table of runs: runs of one ledger never overlap, so each entry is found in at most one place, the latest.

Works inside a transaction that the caller owns, and answers LMDB's failures as Status; knows no environment, no latch.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from bookie._fast.lmdb_c cimport MDB_cursor, MDB_dbi, MDB_txn
from bookie._fast.run_codec cimport RUN_SLOTS_MAX, IndexRun, StoredRun
from bookie._fast.types cimport Status

cdef struct RunWriter:
    # One thread's; txn and cursor belong to the open write transaction.
    MDB_txn* txn
    MDB_cursor* cursor
    MDB_dbi table
    uint32_t[RUN_SLOTS_MAX] old_lengths
    uint8_t[RUN_SLOTS_MAX] old_replaced     # slots of an old run that the new one replaces
    uint8_t[RUN_SLOTS_MAX] new_occupied     # gaps of the new run that hold an older entry

# The run of `ledger` that spans `entry` (perhaps as a gap), else the first one behind it, else NO_ENTRY.
# What is found points into the map: see MDB_val.
cdef Status run_seek(MDB_cursor* cursor, int64_t ledger, int64_t entry, StoredRun* run) noexcept nogil
# The last run of `ledger`, or NO_ENTRY.
cdef Status run_last(MDB_cursor* cursor, int64_t ledger, StoredRun* run) noexcept nogil

# BAD_REQUEST, with nothing changed, when `run` breaks the limits of IndexRun; ids end below INT64_MAX.
cdef Status run_put(RunWriter* writer, const IndexRun* run) noexcept nogil
cdef Status run_delete_ledger(RunWriter* writer, int64_t ledger) noexcept nogil
# `stored` unpacked into `run`, its lengths in lengths[stored.count].
cdef void run_describe(const StoredRun* stored, uint32_t* lengths, IndexRun* run) noexcept nogil
