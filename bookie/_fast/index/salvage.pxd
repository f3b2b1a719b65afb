"""What can still be read of a damaged index, copied run by run into a new one, and which ledgers lost something.

Each stored value is believed by its own checksum, and tells which one follows. Where something between two runs could
not be read, any ledger may have lost entries, from the ledger of the first to that of the second. The caller's thread.
"""
from libc.stdint cimport int64_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.index.key cimport RunKey
from bookie._fast.index.lmdb_pages cimport PageFile, Tree
from bookie._fast.index.state cimport LocationIndex

cdef struct LostRange:
    int64_t first                # ledgers, both included
    int64_t last

cdef struct Salvage:
    LocationIndex* fresh         # open, empty; a transaction is open
    uint64_t runs                # copied
    uint64_t lost_values         # values, or parts of the tree, that could not be read
    LostRange* lost              # ascending; neighbours may share a ledger
    uint64_t lost_count
    uint64_t lost_room
    int64_t ledger               # of the run before
    int64_t entry                # the entry behind it
    RunKey next                  # what that run, or the head, says that follows it
    bint chained                 # `next` is known
    bint headed                  # the head or a run was there
    bint open_loss               # something behind it was lost
    uint64_t uncommitted

cdef void salvage_init(Salvage* salvage, LocationIndex* fresh) noexcept nogil
cdef void salvage_free(Salvage* salvage) noexcept nogil
# Copy all runs of the tree. OK, or what the new index answered; NO_MEMORY. Free pages that the tree names are stale
# copies: they count as lost.
cdef Status salvage_runs(Salvage* salvage, const PageFile* file, const Tree* locations,
                         const Tree* free_list) noexcept nogil
# Everything is lost: not even the root is known.
cdef Status salvage_nothing(Salvage* salvage) noexcept nogil
cdef bint salvage_lost_of(const Salvage* salvage, int64_t ledger) noexcept nogil
