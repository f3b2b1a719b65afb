"""What a commit made of an index, as its readers share it: the roots of its trees, and the sums of its branches.

The writing thread publishes one after each commit. LMDB's own read transaction keeps the pages from being reused:
those that commit n + 1 took out of the trees are used again by commit n + 3 at the earliest, and not while somebody
reads commit n + 1 or an older one. A reader begins its transaction first and takes the latest snapshot then, which is
that commit, a later one, or the one before it. Readers write nothing that others read but which snapshot they are at,
so that they do not hold up each other; the writing thread frees what nobody is at.
"""
from libc.stdint cimport uint64_t

from bookie._fast.base.file cimport FileOps
from bookie._fast.base.sync cimport pthread_mutex_t
from bookie._fast.index.branch_sums cimport BranchSums
from bookie._fast.index.guard cimport TABLES, Guard
from bookie._fast.index.lmdb_pages cimport PageFile, Tree

cdef enum:
    BRANCHES_KEPT = 1024         # pages a commit: all of an index of 400 MiB, 4 MiB of memory

cdef struct IndexSnapshot:
    IndexSnapshot* older         # of those that are replaced and not yet freed
    uint64_t commit              # its number
    PageFile file
    Tree tables[TABLES]
    BranchSums* sums             # of the first one

cdef struct SnapshotUser:
    # One reader; the one that it reads is not freed.
    IndexSnapshot* at            # atomic: the one that it reads; NULL: none
    SnapshotUser* next_user

cdef struct Snapshots:
    IndexSnapshot* latest        # atomic; NULL: the last commit cannot be read
    pthread_mutex_t lock         # guards the list of users
    SnapshotUser* users
    # the writing thread's
    FileOps* ops                 # what pages are read through
    IndexSnapshot* replaced

cdef void snapshots_init(Snapshots* snapshots) noexcept nogil
# Nobody is at any of them.
cdef void snapshots_free(Snapshots* snapshots) noexcept nogil
cdef void snapshots_add_user(Snapshots* snapshots, SnapshotUser* user) noexcept nogil
cdef void snapshots_remove_user(Snapshots* snapshots, SnapshotUser* user) noexcept nogil
# What `guard` has learnt of the last commit, of which the one before is the latest so far; NULL: it could not. False:
# it is damaged in a way that the guard does not see, or there is no memory. The guard compares with these sums then.
cdef bint snapshots_publish(Snapshots* snapshots, Guard* guard) noexcept nogil
# Go on with what `fresh` has; nobody is at any snapshot of either.
cdef void snapshots_replace(Snapshots* snapshots, Snapshots* fresh) noexcept nogil
# The latest one; it lives until the same user leaves it. NULL: see `latest`.
cdef IndexSnapshot* snapshot_take(Snapshots* snapshots, SnapshotUser* user) noexcept nogil
cdef void snapshot_leave(SnapshotUser* user) noexcept nogil
