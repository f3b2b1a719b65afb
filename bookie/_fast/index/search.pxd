"""Runs found in the pages of a commit, read with pread: nothing of the file is believed, and every answer is proven.

Branch pages are what they were when they were written (`branch_sums`); in a leaf each number is checked before it is
used, and the chain of runs shows whatever is missing. So damage is CORRUPT, a page that the disk cannot read IO_ERROR,
and a search takes as many reads as the tree is deep, twice as many at the most. The caller keeps LMDB from reusing the
pages. One thread a search.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.file cimport FileOps
from bookie._fast.base.types cimport Status
from bookie._fast.index.branch_sums cimport BranchSums
from bookie._fast.index.codec cimport StoredRun
from bookie._fast.index.key cimport RunKey
from bookie._fast.index.lmdb_pages cimport PageFile, Tree

cdef struct RunSearch:
    # set by the caller, for one commit
    FileOps* ops
    PageFile file
    Tree tree
    const BranchSums* sums
    uint64_t commit              # its number; 0: nothing that was read is kept
    bint from_disk               # pages are read even where they are kept: who looks for damage asks so
    # its own: the leaf that was read last, where in it, and the branch
    uint8_t* leaf
    uint64_t leaf_commit         # whose the leaf is
    uint64_t leaf_number         # 0: nothing is read
    uint8_t* page                # room for a branch that is not kept
    const uint8_t* branch
    uint32_t page_bytes          # of both
    uint32_t at

# Zeroed at first. False: no memory.
cdef bint search_prepare(RunSearch* search) noexcept nogil
cdef void search_free(RunSearch* search) noexcept nogil

# What is found points into `leaf`, and lives until the next call.
# The run of `ledger` that spans `entry`, perhaps as a gap, or NO_ENTRY.
cdef Status search_spanning(RunSearch* search, int64_t ledger, int64_t entry, StoredRun* run) noexcept nogil
# The same, else the first run of `ledger` behind `entry`, or NO_ENTRY.
cdef Status search_next(RunSearch* search, int64_t ledger, int64_t entry, StoredRun* run) noexcept nogil
# The last run of `ledger`, or NO_ENTRY.
cdef Status search_last(RunSearch* search, int64_t ledger, StoredRun* run) noexcept nogil
# The first run at or behind `key`, of whatever ledger, or END.
cdef Status search_from(RunSearch* search, RunKey key, StoredRun* run) noexcept nogil
# The run behind `run`, which was found last, or END.
cdef Status search_following(RunSearch* search, StoredRun* run) noexcept nogil
