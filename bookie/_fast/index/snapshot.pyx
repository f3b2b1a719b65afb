"""Publishes commits, and frees snapshots that no reader uses any more."""
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from bookie._fast.base.file cimport real_ops
from bookie._fast.base.sync cimport (
    bk_fence,
    bk_load_pointer,
    bk_store_pointer,
    pthread_mutex_destroy,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)
from bookie._fast.base.types cimport OK, Status
from bookie._fast.index.branch_sums cimport BranchSums, sums_free, sums_of
from bookie._fast.index.guard cimport TABLE_LOCATIONS
from bookie._fast.index.lmdb_tree cimport see_free_pages, seen_pages


cdef void snapshots_init(Snapshots* snapshots) noexcept nogil:
    pthread_mutex_init(&snapshots.lock, NULL)
    snapshots.ops = real_ops()
    snapshots.users = NULL
    snapshots.replaced = NULL
    snapshots.latest = NULL


cdef void snapshots_free(Snapshots* snapshots) noexcept nogil:
    latest_becomes(snapshots, NULL)
    pthread_mutex_destroy(&snapshots.lock)


cdef void snapshots_add_user(Snapshots* snapshots, SnapshotUser* user) noexcept nogil:
    user.at = NULL
    pthread_mutex_lock(&snapshots.lock)
    user.next_user = snapshots.users
    snapshots.users = user
    pthread_mutex_unlock(&snapshots.lock)


cdef void snapshots_remove_user(Snapshots* snapshots, SnapshotUser* user) noexcept nogil:
    cdef SnapshotUser** link = &snapshots.users
    pthread_mutex_lock(&snapshots.lock)
    while link[0] != user:
        link = &link[0].next_user
    link[0] = user.next_user
    pthread_mutex_unlock(&snapshots.lock)


# --- the life of a snapshot ---

cdef IndexSnapshot* snapshot_take(Snapshots* snapshots, SnapshotUser* user) noexcept nogil:
    """Announce the snapshot first and then look again: latest_becomes does these two steps in the opposite order."""
    cdef void* latest = bk_load_pointer(<void**> &snapshots.latest)
    cdef void* taken = NULL
    while taken != latest:
        taken = latest
        bk_store_pointer(<void**> &user.at, taken)
        bk_fence()
        latest = bk_load_pointer(<void**> &snapshots.latest)
    return <IndexSnapshot*> taken


cdef void snapshot_leave(SnapshotUser* user) noexcept nogil:
    bk_store_pointer(<void**> &user.at, NULL)


cdef bint is_read(Snapshots* snapshots, IndexSnapshot* snapshot) noexcept nogil:
    cdef SnapshotUser* user
    cdef bint found = False
    pthread_mutex_lock(&snapshots.lock)
    user = snapshots.users
    while user != NULL and not found:
        found = bk_load_pointer(<void**> &user.at) == <void*> snapshot
        user = user.next_user
    pthread_mutex_unlock(&snapshots.lock)
    return found


cdef void latest_becomes(Snapshots* snapshots, IndexSnapshot* made) noexcept nogil:
    """Replace the latest snapshot, and free replaced ones that no reader uses."""
    cdef IndexSnapshot* before = snapshots.latest
    cdef IndexSnapshot** link = &snapshots.replaced
    cdef IndexSnapshot* one
    bk_store_pointer(<void**> &snapshots.latest, made)
    bk_fence()
    if before != NULL:
        before.older = snapshots.replaced
        snapshots.replaced = before
    while link[0] != NULL:
        one = link[0]
        if is_read(snapshots, one):
            link = &one.older
            continue
        link[0] = one.older
        sums_free(one.sums)
        free(one)


cdef void snapshots_replace(Snapshots* snapshots, Snapshots* fresh) noexcept nogil:
    cdef IndexSnapshot* latest = fresh.latest
    fresh.latest = NULL
    latest_becomes(snapshots, latest)


# --- publishing ---

cdef IndexSnapshot* snapshot_of(Snapshots* snapshots, const Guard* guard) noexcept nogil:
    """Build a snapshot from the one before; if there is none, check that no branch page is free or repeated."""
    cdef const BranchSums* before = snapshots.latest.sums if snapshots.latest != NULL else NULL
    cdef IndexSnapshot* made = <IndexSnapshot*> calloc(1, sizeof(IndexSnapshot))
    cdef unsigned char* seen = NULL
    cdef Status status = OK
    if made == NULL:
        return NULL
    made.commit = guard.meta.transaction
    made.file = guard.file
    memcpy(made.tables, guard.tables, sizeof(guard.tables))
    if before == NULL:
        seen = seen_pages(&made.file)
        if seen == NULL or see_free_pages(seen, &made.file, &guard.meta.free) != OK:
            free(seen)
            free(made)
            return NULL
    made.sums = sums_of(snapshots.ops, &made.file, &made.tables[TABLE_LOCATIONS], before, seen,
                        BRANCHES_KEPT, &status)
    free(seen)
    if made.sums != NULL:
        return made
    free(made)
    return NULL


cdef bint snapshots_publish(Snapshots* snapshots, Guard* guard) noexcept nogil:
    cdef IndexSnapshot* made = snapshot_of(snapshots, guard) if guard != NULL else NULL
    if guard != NULL:
        guard.sums = made.sums if made != NULL else NULL
    latest_becomes(snapshots, made)
    return made != NULL
