"""Finds runs in the pages of a commit, read with pread: nothing in the file is trusted, and every result is proven.

Branch pages are compared with their checksums (`branch_sums`); in a leaf each number is checked before it is used, and
the chain of runs reveals anything that is missing. So damage is CORRUPT, and a page that the disk cannot read is
IO_ERROR. A search takes as many reads as the tree is deep, at most twice as many. The caller keeps LMDB from reusing
the pages. One thread for each search.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.file cimport FileOps
from bookie._fast.base.types cimport Status
from bookie._fast.index.branch_sums cimport BranchSums
from bookie._fast.index.codec cimport StoredRun
from bookie._fast.index.key cimport RunKey
from bookie._fast.index.lmdb_pages cimport PageFile, Tree

cdef struct RunSearch:
    # Set by the caller, for one commit.
    FileOps* ops
    PageFile file
    Tree tree
    const BranchSums* sums
    uint64_t commit              # its number; 0: pages read before are not reused
    bint from_disk               # read pages even if they are in memory, to look for damage on the disk
    # Owned by the search: the last leaf read, the position in it, and the branch.
    uint8_t* leaf
    uint64_t leaf_commit         # the commit of the leaf
    uint64_t leaf_number         # 0 if no leaf was read
    uint8_t* page                # buffer for a branch that is not in memory
    const uint8_t* branch
    uint32_t page_bytes          # size of both buffers
    uint32_t at

# Allocate the buffers. The struct was zeroed before the first call. Return False if there is no memory.
cdef bint search_prepare(RunSearch* search) noexcept nogil
cdef void search_free(RunSearch* search) noexcept nogil

# Runs that are found point into `leaf` and are valid until the next call.
#
# Find the run of `ledger` that spans `entry`, perhaps as a gap. OK or NO_ENTRY, or CORRUPT, IO_ERROR.
cdef Status search_spanning(RunSearch* search, int64_t ledger, int64_t entry, StoredRun* run) noexcept nogil
# The same, or else the first run of `ledger` after `entry`.
cdef Status search_next(RunSearch* search, int64_t ledger, int64_t entry, StoredRun* run) noexcept nogil
# Find the last run of `ledger`. NO_ENTRY if it has none.
cdef Status search_last(RunSearch* search, int64_t ledger, StoredRun* run) noexcept nogil
# Find the first run at or after `key`, of any ledger. END if there is none.
cdef Status search_from(RunSearch* search, RunKey key, StoredRun* run) noexcept nogil
# Find the run after `run`, which was found last. END if there is none.
cdef Status search_following(RunSearch* search, StoredRun* run) noexcept nogil
