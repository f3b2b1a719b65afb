"""Checkpoints: all directories are flushed at the same time, and each then gets its mark."""
from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from bookie._fast.base.crash_steps cimport STEP_MARKED, STEP_MARK_WRITTEN, STEP_TRIMMED, step
from bookie._fast.base.fatal cimport fatal_is_set
from bookie._fast.base.planted cimport (
    PLANT_LAG_FORGOTTEN,
    PLANT_MARK_EARLY,
    PLANT_MARK_LATE,
    PLANT_MARK_WHEN_FULL,
    PLANT_ROOM_WAITS,
    bk_planted,
)
from bookie._fast.base.sync cimport (
    bk_add_relaxed,
    bk_exchange,
    bk_load,
    bk_store,
    cond_wait_until,
    now_ns,
    pthread_cond_broadcast,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)
from bookie._fast.base.types cimport CORRUPT, IO_ERROR, NO_MEMORY, NO_SPACE, OK
from bookie._fast.journal.files cimport journal_mark
from bookie._fast.store.carry_over cimport stores_carry_over, stores_hurry
from bookie._fast.store.flush cimport or_end, store_flush, store_flush_for_room, store_flush_spare
from bookie._fast.store.flush_job cimport FlushJob
from bookie._fast.store.flushers cimport (
    FlushWork,
    flush_everywhere,
    flusher_begin,
    flusher_end,
    flusher_is_idle,
)
from bookie._fast.store.index_slices cimport turn_forget_marks, turn_mark_due, turn_note_mark
from bookie._fast.store.index_turn cimport NotedMark
from bookie._fast.store.last_mark cimport marks_trim, marks_write
from bookie._fast.store.spare_half cimport SPARE_TICK_US, spare_take_back, spares_take_back
from bookie._fast.store.storage cimport StorageEngine, stores_judge_space, stores_request_flush
from bookie._fast.store.stores cimport STORES_MOST, Store

cdef enum:
    REST_NS = 1000000000

cdef struct Round:
    # What the flushers of a checkpoint do.
    uint32_t first_jobs          # directories whose first flush is not done
    uint32_t jobs                # directories that are being flushed
    bint[STORES_MOST] running
    int64_t[STORES_MOST] begun   # when the latest flush began
    bint[STORES_MOST] again      # the first flush is done
    int64_t[STORES_MOST] rests_until     # after a failed flush


cdef void take_places(Storage* stores, int64_t* ids, uint64_t* offsets) noexcept nogil:
    """Get the place up to which each journal is on disk, for the marks."""
    cdef uint32_t i
    for i in range(stores.journal_count):
        journal_mark(stores.journals[i], &ids[i], &offsets[i])
        if ids[i] == 0:
            ids[0] = 0           # a full disk keeps a journal from opening its first file: no mark moves


cdef void note_marks(Storage* stores) noexcept nogil:
    """Note for each store what its mark will be. This precedes all flushes."""
    cdef FlushJob* first = &stores.stores[0].job
    cdef uint32_t i
    take_places(stores, first.mark_ids, first.mark_offsets)
    for i in range(1, stores.count):
        memcpy(stores.stores[i].job.mark_ids, first.mark_ids, sizeof(first.mark_ids))
        memcpy(stores.stores[i].job.mark_offsets, first.mark_offsets, sizeof(first.mark_offsets))


cdef Status checkpoint_store(Storage* stores, Store* store, bint whole) noexcept nogil:
    """Flush one directory and write the mark that is due. The mark covers this directory only, so it waits for no
    other.
    """
    cdef const NotedMark* mark = NULL
    # The half of an earlier flush that failed goes first: the shards that it puts do not hold what the mark is for.
    cdef Status status = store_flush_spare(stores, store)
    if status == OK:
        turn_note_mark(store, store.job.mark_ids, store.job.mark_offsets)
        status = store_flush(stores, store) if whole else store_flush_for_room(stores, store)
    if status == OK and bk_load(&store.lagging) and not bk_planted(PLANT_LAG_FORGOTTEN):
        status = NO_SPACE        # the journals still have entries that this directory lacks
    bk_store(&store.no_space, status == NO_SPACE)
    if status == NO_SPACE and bk_planted(PLANT_MARK_WHEN_FULL):
        status = OK
    if status == OK:
        mark = turn_mark_due(store)
    if mark != NULL and bk_planted(PLANT_MARK_LATE):
        take_places(stores, store.turn.due.ids, store.turn.due.offsets)
    if mark != NULL and mark.ids[0]:
        status = marks_write(stores, store, mark.ids, mark.offsets)
    if status != OK:
        turn_forget_marks(store)         # a carry-over may write a newer one, whose older files are then removed
    return or_end(status)


cdef Status checkpoint_whole(Storage* stores, Store* store) noexcept nogil:
    return checkpoint_store(stores, store, True)


cdef Status checkpoint_for_room(Storage* stores, Store* store) noexcept nogil:
    return checkpoint_store(stores, store, False)


cdef void note_late(Store* store, Status status) noexcept nogil:
    """Record a failed flush for metrics and log; a full disk has a log message of its own."""
    bk_add_relaxed(&store.stats.flushes_put_off, 1)
    if status != NO_SPACE:
        bk_store(&store.put_off_for, status)


cdef Status first_failure(Storage* stores, const Status* found) noexcept nogil:
    """Return a failed write if there is one, else the first failure."""
    cdef Status status = OK
    cdef uint32_t i
    for i in range(stores.count):
        if found[i] == IO_ERROR or status == OK:
            status = found[i]
    return status


cdef bint wants_room(Store* store, int64_t rests_until) noexcept nogil:
    return bk_load(&store.job.room_wanted) and now_ns() >= rests_until and not bk_planted(PLANT_ROOM_WAITS)


cdef bint one_takes_long(Storage* stores, const Round* round) noexcept nogil:
    cdef int64_t now = now_ns()
    cdef uint32_t i
    for i in range(stores.count):
        if round.running[i] and now - round.begun[i] >= REST_NS:
            return True
    return False


cdef bint goes_again(Storage* stores, const Round* round, uint32_t i) noexcept nogil:
    """Return whether this directory is to be flushed again: adds need room in it, and the checkpoint does not end yet.
    Once all have had their first flush, it ends with the latest ones, unless one of these takes long, or hangs.
    """
    if round.running[i] or not wants_room(stores.stores[i], round.rests_until[i]):
        return False
    return round.first_jobs != 0 or one_takes_long(stores, round)


cdef void begin_job(Storage* stores, Round* round, uint32_t i, FlushWork work) noexcept nogil:
    round.running[i] = True
    round.jobs += 1
    round.begun[i] = now_ns()
    flusher_begin(stores, stores.stores[i], work)


cdef void await_flusher(Storage* stores, const Round* round) noexcept nogil:
    """Wait until a flusher has done its job, or a directory is to be flushed again."""
    cdef uint32_t i
    cdef bint all_of_them = True
    cdef bint changed = False
    for i in range(stores.count):
        if not round.running[i]:
            all_of_them = spare_take_back(stores, stores.stores[i]) and all_of_them
    pthread_mutex_lock(&stores.flush_lock)
    for i in range(stores.count):
        changed |= flusher_is_idle(stores.stores[i]) if round.running[i] else goes_again(stores, round, i)
    if not changed:
        cond_wait_until(&stores.flush_wanted, &stores.flush_lock,
                        now_ns() + (REST_NS if all_of_them else SPARE_TICK_US * 1000))
    pthread_mutex_unlock(&stores.flush_lock)


cdef void flush_meanwhile(Storage* stores, Round* round, Status* found) noexcept nogil:
    """Take what the flushers have done, and ask those again whose directories need room, so that one that is slow, or
    hangs, delays no other one.
    """
    cdef Store* store
    cdef Status status
    cdef uint32_t i
    for i in range(stores.count):
        store = stores.stores[i]
        if round.running[i] and flusher_is_idle(store):
            status = flusher_end(store)
            found[i] = status if found[i] == OK else found[i]
            round.running[i] = False
            round.jobs -= 1
            round.first_jobs -= not round.again[i]
            round.again[i] = True
            round.rests_until[i] = 0 if status == OK else now_ns() + REST_NS
        if goes_again(stores, round, i):
            bk_store(&store.job.room_wanted, 0)      # a flush that has nothing to swap leaves it
            take_places(stores, store.job.mark_ids, store.job.mark_offsets)
            begin_job(stores, round, i, checkpoint_for_room)


cdef void checkpoint_everywhere(Storage* stores, FlushWork work, Status* found) noexcept nogil:
    """Run the checkpoint of each directory, all at the same time. `found` gets OK, or the first failure of each."""
    cdef Round round
    cdef uint32_t i
    if stores.count == 1:
        found[0] = work(stores, stores.stores[0])
        return
    memset(&round, 0, sizeof(Round))
    round.first_jobs = stores.count
    for i in range(stores.count):
        found[i] = OK
        begin_job(stores, &round, i, work)
    flush_meanwhile(stores, &round, found)
    while round.jobs:
        await_flusher(stores, &round)
        flush_meanwhile(stores, &round, found)


cdef Status stores_checkpoint(Storage* stores, bint whole) noexcept nogil:
    """Flush all stores and write their marks, then trim the journals. A store that fails keeps no other one back."""
    cdef Status found[STORES_MOST]
    cdef Store* store
    cdef uint32_t i
    cdef Status late = OK
    note_marks(stores)
    stores.generation += 1
    if bk_planted(PLANT_MARK_EARLY):
        for i in range(stores.count):
            store = stores.stores[i]
            marks_write(stores, store, store.job.mark_ids, store.job.mark_offsets)
    step(STEP_MARKED)
    checkpoint_everywhere(stores, checkpoint_whole if whole else checkpoint_for_room, found)
    if first_failure(stores, found) == IO_ERROR:
        return IO_ERROR
    for i in range(stores.count):
        stores.stores[i].backlog.late = found[i] != OK
        if found[i] != OK:
            note_late(stores.stores[i], found[i])
            late = late if late == NO_SPACE else found[i]
    step(STEP_MARK_WRITTEN)
    marks_trim(stores)
    step(STEP_TRIMMED)
    return late


cdef Status run_once(Storage* stores, bint whole) noexcept nogil:
    """Run one checkpoint; unless it is `whole`, runs may be left pending (module store.index_slices). On a full disk
    adds are refused; a failed flush is repeated; a failed write is fatal.
    """
    cdef Status status = stores_checkpoint(stores, whole)
    if status == OK or status == NO_SPACE:
        bk_store(&stores.disk_full, status == NO_SPACE)
        stores_judge_space(stores)
    return or_end(status)


cdef void rest(Storage* stores) noexcept nogil:
    """Rest after a failed flush: adds that wait for room request another at once, which would fail the same way."""
    cdef int64_t deadline = now_ns() + REST_NS
    pthread_mutex_lock(&stores.flush_lock)
    while now_ns() < deadline and not stores.stopping:
        cond_wait_until(&stores.flush_wanted, &stores.flush_lock, deadline)
    pthread_mutex_unlock(&stores.flush_lock)


cdef bint may_catch_up(Storage* stores) noexcept nogil:
    """Return whether a directory with an unfinished replay has flushed what it took, so that there is room for more."""
    cdef uint32_t i
    for i in range(stores.count):
        if bk_load(&stores.stores[i].lagging) and (bk_load(&stores.stores[i].spare_clean)
                                                   or bk_load(&stores.stores[i].spare_read)):
            return True
    return False


cdef bint wanted(Storage* stores) noexcept nogil:
    """Return whether a checkpoint was requested. With `flush_lock`."""
    cdef uint32_t i
    for i in range(stores.count):
        if bk_load(&stores.stores[i].job.room_wanted):
            return True
    return stores.flush_requests != stores.flush_served


cdef int64_t take_requests(Storage* stores) noexcept nogil:
    """Return the number of the last request, and reset those for room. With `flush_lock`."""
    cdef uint32_t i
    for i in range(stores.count):
        bk_store(&stores.stores[i].job.room_wanted, 0)
    return stores.flush_requests


cdef class Checkpointer:
    """The flush thread: it runs a checkpoint in each interval, and whenever one is requested."""

    def __init__(self, StorageEngine stores, *, interval_ms: int, marks=()):
        """`marks`: for each journal the (file id, offset, generation) of each store, as read at start."""
        self.stores_room = stores
        self.stores = stores.stores
        for journal, of_journal in enumerate(marks):
            for i, (file_id, _offset, generation) in enumerate(of_journal):
                self.stores.stores[i].backlog.marked[journal] = file_id
                self.stores.stores[i].backlog.marked_ns = now_ns()
                self.stores.generation = max(self.stores.generation, generation)
        self.interval_ns = interval_ms * 1000000

    def run(self) -> None:
        """Run checkpoints until `stop` or a fatal failure. The body of the flush thread."""
        cdef Storage* stores = self.stores
        cdef int64_t requests, deadline, tick, early
        cdef bint whole
        cdef Status status
        with nogil:
            while not fatal_is_set():
                early = now_ns() + REST_NS
                deadline = now_ns() + self.interval_ns
                pthread_mutex_lock(&stores.flush_lock)
                while not wanted(stores) and not stores.stopping and now_ns() < deadline:
                    if now_ns() >= early and stores_hurry(stores):
                        break
                    tick = now_ns() + (REST_NS if spares_take_back(stores) else SPARE_TICK_US * 1000)
                    cond_wait_until(&stores.flush_wanted, &stores.flush_lock, tick if tick < deadline else deadline)
                whole = now_ns() >= deadline or stores.flush_requests != stores.flush_served or stores_hurry(stores)
                requests = take_requests(stores)
                pthread_mutex_unlock(&stores.flush_lock)
                if stores.stopping:
                    break
                status = run_once(stores, whole)
                or_end(stores_carry_over(stores))
                if may_catch_up(stores):
                    with gil:
                        if self.catch_up is not None and self.catch_up():
                            stores_request_flush(stores)         # marks can move and adds are accepted now
                pthread_mutex_lock(&stores.flush_lock)
                stores.flush_served = requests
                if status == OK and whole:
                    stores.flush_succeeded = requests
                pthread_cond_broadcast(&stores.flush_done)
                pthread_mutex_unlock(&stores.flush_lock)
                if status != OK and status != NO_SPACE:
                    rest(stores)

    def checkpoint(self, double within_s=float("inf")) -> bool:
        """Request a checkpoint of everything until now, wait for the flush thread to run it, and return its success.

        Raises TimeoutError if it has not ended within `within_s` seconds; it goes on.
        """
        cdef Storage* stores = self.stores
        cdef int64_t mine
        cdef int64_t deadline = INT64_MAX if within_s > 1e9 else now_ns() + <int64_t>(within_s * 1e9)
        cdef bint succeeded, ended
        with nogil:
            stores_request_flush(stores)
            pthread_mutex_lock(&stores.flush_lock)
            mine = stores.flush_requests
            while (
                stores.flush_served < mine and not stores.stopping and not fatal_is_set() and now_ns() < deadline
            ):
                cond_wait_until(&stores.flush_done, &stores.flush_lock, now_ns() + 100000000)
            succeeded = stores.flush_succeeded >= mine
            ended = stores.flush_served >= mine or stores.stopping or fatal_is_set()
            pthread_mutex_unlock(&stores.flush_lock)
        if not ended:
            raise TimeoutError(
                f"the flush has not ended within {within_s:.3g} s and goes on: a disk is slow or hangs; ask again later"
            )
        return succeeded and not fatal_is_set()

    def take_put_off(self) -> list[tuple[int, str]]:
        """Return (directory number, reason) of failed flushes since the last call, except those for lack of space."""
        found = []
        for i in range(self.stores.count):
            status = bk_exchange(&self.stores.stores[i].put_off_for, OK)
            if status != OK:
                found.append((i, "no memory" if status == NO_MEMORY else "the location index is damaged"
                              if status == CORRUPT else f"status {status}"))
        return found

    def flush_stores(self) -> None:
        """Flush what replay restored; no mark moves, because there is no new journal yet. OSError on failure."""
        cdef Status found[STORES_MOST]
        self._require_open()
        with nogil:
            flush_everywhere(self.stores, store_flush, found)
        self._raise(first_failure(self.stores, found))

    def flush_alone(self, *, bint whole=True) -> None:
        """Run a checkpoint in the calling thread: in recovery, and after the flush thread's end. OSError on failure.

        Unless it is `whole`, runs may be left pending, as after one for lack of room.
        """
        cdef Status status
        self._require_open()
        with nogil:
            status = run_once(self.stores, whole)
        self._raise(status)

    cdef _require_open(self):
        cdef uint32_t i
        for i in range(self.stores.count):
            if self.stores.stores[i].index == NULL:
                raise ValueError("the stores are closed")

    cdef _raise(self, Status status):
        if status == NO_SPACE:
            raise OSError(28, "no space left for the checkpoint; free disk space in the ledger directories")
        if status == CORRUPT:
            raise OSError(117, "the checkpoint cannot run while the damaged location index is being repaired")
        if status != OK:
            raise OSError(5, f"the checkpoint failed (status {<int> status}): entry log, index or mark was not written")

    def stop(self) -> None:
        cdef Storage* stores = self.stores
        with nogil:
            pthread_mutex_lock(&stores.flush_lock)
            stores.stopping = True
            pthread_cond_broadcast(&stores.flush_wanted)
            pthread_cond_broadcast(&stores.flush_done)
            pthread_mutex_unlock(&stores.flush_lock)
