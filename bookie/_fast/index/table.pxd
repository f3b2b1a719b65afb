"""The table of runs: runs of one ledger never overlap, so each entry is found in at most one place, the latest.

Each run names the one behind it, whatever its ledger, and a head below all of them names the first: the chain. Whoever
was led to the wrong place by a damaged page of LMDB's sees it there, so that it takes one checked value to say that
something is not stored. A write keeps the chain whole, or answers CORRUPT where it finds it broken.
Works inside a transaction that the caller owns, and answers LMDB's failures as Status; knows no environment, no latch.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.lmdb_c cimport MDB_cursor, MDB_dbi, MDB_txn
from bookie._fast.base.types cimport Status
from bookie._fast.index.codec cimport RUN_SLOTS_MAX, IndexRun, StoredRun
from bookie._fast.index.key cimport RunKey

cdef struct Moved:
    # A stretch of records of one ledger that lies byte for byte at another place too.
    int64_t ledger
    int64_t first                # entry ids, ascending, gaps allowed
    int64_t last
    uint64_t bytes               # whole records
    uint32_t from_log
    uint64_t from_offset         # of the first record's length word
    uint32_t to_log
    uint64_t to_offset

cdef struct RunWriter:
    # One thread's; txn and cursor belong to the open write transaction.
    MDB_txn* txn
    MDB_cursor* cursor
    MDB_dbi table
    uint32_t[RUN_SLOTS_MAX] old_lengths
    uint8_t[RUN_SLOTS_MAX] old_replaced     # slots of an old run that the new one replaces
    uint8_t[RUN_SLOTS_MAX] new_occupied     # gaps of the new run that hold an older entry

# The run of `ledger` that spans `entry` (perhaps as a gap), else the first one behind it, else NO_ENTRY, each of them
# proven; CORRUPT: the table does not keep to the chain there. What is found points into the map: see MDB_val.
cdef Status run_seek(MDB_cursor* cursor, int64_t ledger, int64_t entry, StoredRun* run) noexcept nogil
# The last run of `ledger`, or NO_ENTRY.
cdef Status run_last(MDB_cursor* cursor, int64_t ledger, StoredRun* run) noexcept nogil

# BAD_REQUEST, with nothing changed, when `run` breaks the limits of IndexRun; ids end below INT64_MAX.
cdef Status run_put(RunWriter* writer, const IndexRun* run) noexcept nogil
# The same for a run that touches none that is stored: nothing is looked for.
cdef Status run_add(RunWriter* writer, const IndexRun* run) noexcept nogil
# The values of `piece` alone, whatever is stored there, each naming the one behind it, the last one `next`; `piece` is
# consumed.
cdef Status run_put_values(RunWriter* writer, IndexRun* piece, RunKey next) noexcept nogil
cdef Status run_delete_ledger(RunWriter* writer, int64_t ledger) noexcept nogil
# Delete runs of `ledger`, `*most` at most; it is lowered by what was deleted. FULL: some are left. What cannot be read
# goes as well; if that is the last run, what follows it is not known, and look-ups there answer CORRUPT from then on.
cdef Status run_delete_some(RunWriter* writer, int64_t ledger, uint32_t* most) noexcept nogil
# See index_relocate.
cdef Status run_relocate(RunWriter* writer, const Moved* moved, uint64_t* bytes) noexcept nogil
# `stored` unpacked into `run`, its lengths in lengths[stored.count].
cdef void run_describe(const StoredRun* stored, uint32_t* lengths, IndexRun* run) noexcept nogil
