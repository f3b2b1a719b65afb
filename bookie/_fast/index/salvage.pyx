"""The walk of the old tree passes values in key order, so that the new tree grows at its end."""
import errno
import os

from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from bookie._fast.base.types cimport CORRUPT, NO_MEMORY, OK, Status
from bookie._fast.index.codec cimport RUN_SLOTS_MAX, IndexRun, StoredRun, key_of, run_unpack, run_unpack_unchained
from bookie._fast.index.guard cimport TABLE_LOCATIONS, Guard, guard_free, guard_guess, guard_init, guard_learn
from bookie._fast.index.key cimport key_end, key_equal
from bookie._fast.index.ledger_tables cimport index_put_doubt
from bookie._fast.index.lmdb_pages cimport Node, PageFile, Tree
from bookie._fast.index.lmdb_tree cimport TreeWalk, see_free_pages, seen_pages, tree_walk
from bookie._fast.index.location cimport index_abort, index_append_run, index_begin, index_commit
from bookie._fast.index.table cimport run_describe
from bookie._fast.index.view cimport Index

cdef enum:
    RUNS_A_COMMIT = 1 << 17


cdef void salvage_init(Salvage* salvage, LocationIndex* fresh) noexcept nogil:
    memset(salvage, 0, sizeof(Salvage))
    salvage.fresh = fresh


cdef void salvage_free(Salvage* salvage) noexcept nogil:
    free(salvage.lost)
    salvage.lost = NULL


cdef Status note_range(Salvage* salvage, int64_t first, int64_t last) noexcept nogil:
    cdef uint64_t room
    cdef LostRange* grown
    cdef LostRange* before
    if salvage.lost_count:
        before = &salvage.lost[salvage.lost_count - 1]
        if first <= before.last:
            before.last = max(before.last, last)
            return OK
    if salvage.lost_count == salvage.lost_room:
        room = 2 * salvage.lost_room if salvage.lost_room else 64
        grown = <LostRange*> realloc(salvage.lost, room * sizeof(LostRange))
        if grown == NULL:
            return NO_MEMORY
        salvage.lost = grown
        salvage.lost_room = room
    salvage.lost[salvage.lost_count].first = first
    salvage.lost[salvage.lost_count].last = last
    salvage.lost_count += 1
    return OK


cdef void lose(Salvage* salvage) noexcept nogil:
    salvage.lost_values += 1
    salvage.open_loss = True


cdef void lose_part(void* context) noexcept nogil:
    cdef Salvage* salvage = <Salvage*> context
    salvage.lost_parts += 1
    lose(salvage)


cdef void break_off(Salvage* salvage) noexcept nogil:
    """Note that the chain of runs does not go on as the last one says."""
    if not salvage.open_loss:
        salvage.outdated = True          # both runs are sound, and everything between them is
    lose(salvage)


cdef bint unpack(Salvage* salvage, const Node* node, const uint8_t* value, StoredRun* run,
                 bint* chained) noexcept nogil:
    """Return whether this is a run after the previous one, or the head; `chained`: it names the next run."""
    chained[0] = run_unpack(node.key, node.key_size, value, node.value_size, run) == OK
    if not chained[0] and run_unpack_unchained(node.key, node.key_size, value, node.value_size, run) != OK:
        return False
    if run.count == 0:
        return not salvage.headed
    return run.ledger > salvage.ledger or (run.ledger == salvage.ledger and run.first >= salvage.entry)


cdef Status keep(void* context, const Node* node, const uint8_t* value) noexcept nogil:
    """Copy one value of the old tree."""
    cdef Salvage* salvage = <Salvage*> context
    cdef StoredRun stored
    cdef IndexRun run
    cdef uint32_t[RUN_SLOTS_MAX] lengths
    cdef bint chained
    cdef Status status = OK
    salvage.values += 1
    if not unpack(salvage, node, value, &stored, &chained):
        lose(salvage)
        return OK
    if stored.count and (salvage.chained or not salvage.headed) \
            and not (salvage.chained and key_equal(salvage.next, key_of(&stored))) and chained:
        break_off(salvage)       # the previous run names another one, or the head is missing
    salvage.headed = True
    salvage.chained = chained
    salvage.next = stored.next
    if stored.count == 0:
        return OK
    if salvage.open_loss:
        status = note_range(salvage, salvage.ledger, stored.ledger)
        salvage.open_loss = False
    if status == OK:
        run_describe(&stored, lengths, &run)
        status = index_append_run(salvage.fresh, &run)
        salvage.runs += 1
        salvage.uncommitted += 1
    salvage.ledger = stored.ledger
    salvage.entry = stored.first + stored.count
    if status == OK and salvage.uncommitted >= RUNS_A_COMMIT:
        salvage.uncommitted = 0
        status = index_commit(salvage.fresh)
        if status == OK:
            status = index_begin(salvage.fresh)
    return status


cdef Status salvage_runs(Salvage* salvage, const PageFile* file, const Tree* locations,
                         const Tree* free_list) noexcept nogil:
    cdef TreeWalk walk
    cdef Status status
    memset(&walk, 0, sizeof(TreeWalk))
    walk.file = file[0]
    walk.each, walk.lost, walk.context = keep, lose_part, salvage
    walk.seen = seen_pages(file)
    if walk.seen == NULL:
        return NO_MEMORY
    status = see_free_pages(walk.seen, file, free_list)
    if status != OK and status != NO_MEMORY:
        # A damaged free list must not exclude pages that are sound.
        memset(walk.seen, 0, file.last // 8 + 1)
        status = OK
    if status == OK:
        status = tree_walk(&walk, locations)
    if status == OK and salvage.chained and not key_equal(salvage.next, key_end()):
        break_off(salvage)
    free(walk.seen)
    if status == OK and salvage.open_loss:
        status = note_range(salvage, salvage.ledger, INT64_MAX)
        salvage.open_loss = False
    if salvage.lost_parts == 0 and salvage.values != locations.entries:
        salvage.lost_values += max(locations.entries, salvage.values) - min(locations.entries, salvage.values)
        salvage.outdated = True
    if status == OK and (salvage.outdated or walk.outdated):
        # Some page is of an earlier commit, since its last write was lost. Nothing tells which: it may be sound, and
        # its runs a chain.
        salvage.lost_count = 0
        status = note_range(salvage, 0, INT64_MAX)
    return status


cdef Status salvage_nothing(Salvage* salvage) noexcept nogil:
    salvage.lost_values += 1
    return note_range(salvage, 0, INT64_MAX)


cdef bint salvage_lost_of(const Salvage* salvage, int64_t ledger) noexcept nogil:
    cdef uint64_t low = 0, high = salvage.lost_count, middle
    while low < high:
        middle = (low + high) // 2
        if salvage.lost[middle].last < ledger:
            low = middle + 1
        else:
            high = middle
    return low < salvage.lost_count and salvage.lost[low].first <= ledger


def salvage_file(path, Index fresh not None):
    """Copy the readable runs of the data file `path`, which nothing has open, into an open and empty index.

    Returns (runs, number of values lost, ledger ranges that may have lost runs, both ends included). The page that
    names the tables may be damaged; what it names may then be of an earlier commit, so all ledgers may have lost runs.
    ValueError if the file does not tell where its tables begin; OSError if it cannot be read or the new index cannot
    be written.
    """
    cdef Guard guard
    cdef Salvage salvage
    cdef Status status
    cdef bint known
    cdef int fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    guard_init(&guard)
    salvage_init(&salvage, fresh.raw)
    try:
        with nogil:
            status = guard_learn(&guard, fd)
            known = guard.roots_known and not guard.stale
        if not guard.roots_known and (status != CORRUPT or not guard_guess(&guard)):
            raise ValueError(f"{path} does not tell where its tables begin (status {<int> status})")
        with nogil:
            status = index_begin(fresh.raw)
            if status == OK:
                status = salvage_runs(&salvage, &guard.file, &guard.tables[TABLE_LOCATIONS], &guard.meta.free)
            if status == OK:
                status = index_commit(fresh.raw)
            else:
                index_abort(fresh.raw)
        if status != OK:
            raise OSError(errno.EIO, f"copying the readable runs of an index failed (status {<int> status})", path)
        ranges = [(salvage.lost[i].first, salvage.lost[i].last) for i in range(salvage.lost_count)]
        return salvage.runs, salvage.lost_values, ranges if known else [(0, INT64_MAX)]
    finally:
        salvage_free(&salvage)
        guard_free(&guard)
        os.close(fd)


def put_doubts(Index fresh not None, ledgers):
    """Put these ledgers in doubt until the entry logs were searched for them. OSError if that fails."""
    cdef int64_t ledger
    cdef Status status = index_begin(fresh.raw)
    for ledger in ledgers:
        if status == OK:
            status = index_put_doubt(fresh.raw, ledger, False)
    status = index_commit(fresh.raw) if status == OK else status
    index_abort(fresh.raw)
    if status != OK:
        raise OSError(errno.EIO, f"storing the ledgers in doubt failed (status {<int> status})")
