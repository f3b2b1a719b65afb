"""The state of an index after a commit, shared by its readers: the roots of its trees, and the sums of its branches.

The writing thread publishes a snapshot after each commit. LMDB's own read transaction keeps the pages from being
reused: pages that commit n + 1 removed from the trees are reused by commit n + 3 at the earliest, and not while a
transaction reads commit n + 1 or an older one. A reader begins its transaction first and then takes the latest
snapshot, which is that commit, a later one, or the one before it. Readers share no memory that they write, except for
the pointer to their snapshot, so they never delay each other; the writing thread frees snapshots that no reader uses.
"""
from libc.stdint cimport uint64_t

from bookie._fast.base.file cimport FileOps
from bookie._fast.base.sync cimport pthread_mutex_t
from bookie._fast.index.branch_sums cimport BranchSums
from bookie._fast.index.guard cimport TABLES, Guard
from bookie._fast.index.lmdb_pages cimport PageFile, Tree

cdef enum:
    BRANCHES_KEPT = 1024         # pages of a commit: all branches of an index of 400 MiB, 4 MiB of memory

cdef struct IndexSnapshot:
    IndexSnapshot* older         # next in the list of snapshots that were replaced and are not freed yet
    uint64_t commit              # its number
    PageFile file
    Tree tables[TABLES]
    BranchSums* sums             # of the first table

cdef struct SnapshotUser:
    # One reader; the snapshot that it reads is not freed.
    IndexSnapshot* at            # atomic; the snapshot that it reads, or NULL
    SnapshotUser* next_user

cdef struct Snapshots:
    IndexSnapshot* latest        # atomic; NULL if the last commit is unreadable
    pthread_mutex_t lock         # guards the list of users
    SnapshotUser* users
    # Used by the writing thread only.
    FileOps* ops                 # for reading pages
    IndexSnapshot* replaced

cdef void snapshots_init(Snapshots* snapshots) noexcept nogil
# Free all snapshots. No reader uses one.
cdef void snapshots_free(Snapshots* snapshots) noexcept nogil
cdef void snapshots_add_user(Snapshots* snapshots, SnapshotUser* user) noexcept nogil
cdef void snapshots_remove_user(Snapshots* snapshots, SnapshotUser* user) noexcept nogil
# Publish the commit that `guard` has learnt, which follows the latest snapshot; NULL: it was unreadable. Return False
# if the branches are damaged, or there is no memory. The guard compares with these sums from then on.
cdef bint snapshots_publish(Snapshots* snapshots, Guard* guard) noexcept nogil
# Continue with the snapshot of `fresh`; no reader uses a snapshot of either.
cdef void snapshots_replace(Snapshots* snapshots, Snapshots* fresh) noexcept nogil
# Return the latest snapshot, which is valid until the same user leaves it. NULL as for `latest`.
cdef IndexSnapshot* snapshot_take(Snapshots* snapshots, SnapshotUser* user) noexcept nogil
cdef void snapshot_leave(SnapshotUser* user) noexcept nogil
