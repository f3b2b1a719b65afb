"""Copies the readable runs of a damaged index into a new one, and tells which ledgers may have lost runs.

Each stored value is verified by its checksum and names the next run. If something between two runs is unreadable,
every ledger from that of the first run to that of the second may have lost entries. If the disk has lost or misplaced
a write, all ledgers may have: a sound page is at the place of another, a run names another one than the next, or
everything is readable, but the number of values is not that of the commit. The caller's thread.
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
    LocationIndex* fresh         # open, empty, with an open transaction
    uint64_t runs                # copied
    uint64_t values              # handed out by the walk, readable or not
    uint64_t lost_values         # unreadable values or parts of the tree
    LostRange* lost              # ascending; adjacent ranges may share a ledger
    uint64_t lost_count
    uint64_t lost_room
    int64_t ledger               # of the previous run
    int64_t entry                # the id after its last entry
    RunKey next                  # the next run according to the previous one, or to the head
    bint chained                 # `next` is known
    bint headed                  # the head or a run was seen
    uint64_t lost_parts          # pages, and values on pages of their own, that cannot be read
    bint outdated                # a page must be of an earlier commit
    bint open_loss               # something after the previous run was lost
    uint64_t uncommitted

cdef void salvage_init(Salvage* salvage, LocationIndex* fresh) noexcept nogil
cdef void salvage_free(Salvage* salvage) noexcept nogil
# Copy all runs of the tree. Return OK, NO_MEMORY, or an error of the new index. A free page in the tree is an old
# copy, and counts as lost.
cdef Status salvage_runs(Salvage* salvage, const PageFile* file, const Tree* locations,
                         const Tree* free_list) noexcept nogil
# Record that everything is lost: not even the root is known.
cdef Status salvage_nothing(Salvage* salvage) noexcept nogil
cdef bint salvage_lost_of(const Salvage* salvage, int64_t ledger) noexcept nogil
