"""The table of runs. Runs of one ledger never overlap, so each entry is found in at most one place, that of its latest
copy.

Each run names the next one, of any ledger, and a head below all of them names the first: the chain. A reader that was
led to the wrong place by a damaged page notices it there, so that one verified value suffices to prove that something
is not stored. A write keeps the chain intact, or returns CORRUPT if it finds it broken. All functions work inside a
transaction of the caller and return LMDB's failures as Status; they do not depend on the environment.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.lmdb_c cimport MDB_cursor, MDB_dbi, MDB_txn
from bookie._fast.base.types cimport Status
from bookie._fast.index.codec cimport RUN_SLOTS_MAX, IndexRun, StoredRun
from bookie._fast.index.key cimport RunKey

cdef struct Moved:
    # Consecutive records of one ledger of which a copy, byte for byte, exists at another place.
    int64_t ledger
    int64_t first                # entry ids, ascending, gaps allowed
    int64_t last
    uint64_t bytes               # of the records, length words included
    uint32_t from_log
    uint64_t from_offset         # of the first record's length word
    uint32_t to_log
    uint64_t to_offset

cdef struct RunWriter:
    # Used by one thread; txn and cursor belong to the open write transaction.
    MDB_txn* txn
    MDB_cursor* cursor
    MDB_dbi table
    uint32_t[RUN_SLOTS_MAX] old_lengths
    uint8_t[RUN_SLOTS_MAX] old_replaced     # slots of an old run that the new one replaces
    uint8_t[RUN_SLOTS_MAX] new_occupied     # gaps of the new run that hold an older entry

# Find the run of `ledger` that spans `entry` (perhaps as a gap), else the first one after it, else NO_ENTRY, each of
# them proven. CORRUPT: the table contradicts the chain there. The run points into LMDB's map: see MDB_val.
cdef Status run_seek(MDB_cursor* cursor, int64_t ledger, int64_t entry, StoredRun* run) noexcept nogil
# Find the last run of `ledger`, or NO_ENTRY.
cdef Status run_last(MDB_cursor* cursor, int64_t ledger, StoredRun* run) noexcept nogil

# Put the first of several runs of one ledger, which ascend and do not overlap, and those after it that lie together
# with it between two stored runs: these share the search. *put is their number. BAD_REQUEST, with nothing changed, if
# the first one breaks the limits of IndexRun; ids end below INT64_MAX.
cdef Status run_put_some(RunWriter* writer, const IndexRun* runs, uint32_t count, uint32_t* put) noexcept nogil
# Put a run that overlaps no stored one: it does not search for older copies.
cdef Status run_add(RunWriter* writer, const IndexRun* run) noexcept nogil
# Write only the values of `piece`, whatever is stored there, each naming the next one, and the last one `next`;
# `piece` is consumed.
cdef Status run_put_values(RunWriter* writer, IndexRun* piece, RunKey next) noexcept nogil
cdef Status run_delete_ledger(RunWriter* writer, int64_t ledger) noexcept nogil
# Delete up to `*most` runs of `ledger` and subtract their number. FULL: some are left. Unreadable runs are deleted
# too; if the last run is one of these, its successor is unknown, and look-ups there return CORRUPT from then on.
cdef Status run_delete_some(RunWriter* writer, int64_t ledger, uint32_t* most) noexcept nogil
# See index_relocate.
cdef Status run_relocate(RunWriter* writer, const Moved* moved, uint64_t* bytes) noexcept nogil
# Unpack `stored` into `run`, with its lengths in lengths[stored.count].
cdef void run_describe(const StoredRun* stored, uint32_t* lengths, IndexRun* run) noexcept nogil
