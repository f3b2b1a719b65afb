"""Adds, fences, LACs and reads on the stores from Python, and groups of a journal. Calls that wait release the GIL."""
from collections import namedtuple

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from bookie._fast.base.cursor cimport load_i64, load_u32
from bookie._fast.base.fatal cimport fatal_is_set
from bookie._fast.base.poll cimport POLLIN, poll, pollfd
from bookie._fast.base.sync cimport (
    bk_load,
    bk_store,
    now_ns,
    pthread_mutex_destroy,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)
from bookie._fast.base.types cimport LENGTH_PREFIX, OK, PENDING, Status
from bookie._fast.base.waker cimport Waker, waker_clear, waker_init
from bookie._fast.journal.commit cimport (
    JournalCommitter,
    journal_append,
    journal_append_meta,
    journal_commit,
    journal_has_room,
    journal_kick,
)
from bookie._fast.journal.files cimport journal_trim
from bookie._fast.journal.state cimport WAKERS_MOST, Journal
from bookie._fast.store.gather cimport ReadRequest, answer_begin, answer_from_memory, answer_release
from bookie._fast.store.kept_list cimport REGIONS_MOST
from bookie._fast.store.ledger_table cimport UNCHANGED, Ledger, ledger_find
from bookie._fast.store.ledger_writes cimport (
    ADD_PLAIN,
    ADD_RECOVERY,
    ADD_REPAIR,
    AddKind,
    stores_add,
    stores_fence,
    stores_write_close,
    stores_write_lac,
)
from bookie._fast.store.read_pool cimport PoolJob, ReadPoolWorkers, pool_free, pool_submit
from bookie._fast.store.storage cimport StorageEngine, store_request_room
from bookie._fast.store.stores cimport Shard, Store, shard_of, store_of

cdef extern from "<unistd.h>" nogil:
    int close_fd "close"(int) noexcept

cdef enum:
    TICK_MS = 50             # the fatal latch wakes no thread, so look at it this often

STATUS = (
    "OK", "NEED_MORE", "NO_LEDGER", "NO_ENTRY", "BAD_REQUEST", "IO_ERROR", "UNAUTHORIZED", "BAD_VERSION", "FENCED",
    "READ_ONLY", "TOO_MANY_REQUESTS", "UNKNOWN_STATE", "FULL", "CORRUPT", "END", "TORN", "NO_SPACE", "NO_MEMORY",
    "CLOSED", "PENDING",
)

LedgerState = namedtuple("LedgerState", "key fenced limbo dirty last last_known lac explicit_lac")


class Refused(Exception):
    """The stores refused a request; `status` is the name of the Status in `types`."""

    def __init__(self, status: str):
        super().__init__(status)
        self.status = status


cdef int check(Status status) except -1:
    if status != OK:
        raise Refused(STATUS[<int> status])
    return 0


cdef void await_wake(Waker* waker) noexcept nogil:
    """Sleep until woken, at most for a tick."""
    cdef pollfd one
    one.fd = waker.fd
    one.events = POLLIN
    poll(&one, 1, TICK_MS)
    waker_clear(waker)


cdef bint await_group(Journal* journal, int64_t group, int64_t deadline, Waker* waker) noexcept nogil:
    while bk_load(&journal.synced_group) < group:
        if fatal_is_set() or now_ns() > deadline:
            return False
        await_wake(waker)
    return True


cdef bint enlist(Journal* journal, Waker* waker) noexcept nogil:
    """Have this waker woken for each published group, until `discharge`. Return False if there are too many."""
    cdef bint room
    pthread_mutex_lock(&journal.commit_lock)
    room = journal.waker_count < WAKERS_MOST
    if room:
        bk_store(&waker.waiting, 1)      # for good: this waits on every wake or tick
        journal.wakers[journal.waker_count] = waker
        journal.waker_count += 1
    pthread_mutex_unlock(&journal.commit_lock)
    return room


cdef void discharge(Journal* journal, const Waker* waker) noexcept nogil:
    cdef int i
    pthread_mutex_lock(&journal.commit_lock)
    for i in range(journal.waker_count):
        if journal.wakers[i] == waker:
            journal.waker_count -= 1
            journal.wakers[i] = journal.wakers[journal.waker_count]
            break
    pthread_mutex_unlock(&journal.commit_lock)


@cython.no_gc_clear
cdef class JournalWriter:
    """Appends to an open JournalCommitter as an I/O loop does, with or without the committer's own threads."""

    def __cinit__(self, JournalCommitter committer):
        self.committer = committer
        if not waker_init(&self.waker) or not enlist(committer.journal, &self.waker):
            raise OSError("no descriptor is left for a waker, or the journal has too many writers")

    def append(self, const uint8_t[::1] record not None) -> int:
        """Append a record; return the number of its group, or 0 if the open group is full."""
        cdef int64_t group
        with nogil:
            group = journal_append(self.committer.journal, &record[0], <uint32_t> record.shape[0])
            journal_kick(self.committer.journal)
        return group

    def append_meta(self, int64_t ledger, int64_t kind, data: bytes | None = None) -> int:
        """Append a key or LAC record, or a fence (`data` None); return its group or 0."""
        cdef const uint8_t* bytes_ = NULL
        cdef uint32_t size = 0
        if data is not None:
            bytes_ = data
            size = <uint32_t> len(data)
        return journal_append_meta(self.committer.journal, ledger, kind, bytes_, size)

    def has_room(self, uint32_t size) -> bool:
        return journal_has_room(self.committer.journal, size)

    def capacity(self) -> int:
        """Return how many bytes of records a group holds."""
        return self.committer.journal.group_capacity

    def commit(self) -> bool:
        """Write and sync the open group in this thread; return False after a failure."""
        cdef bint ok
        with nogil:
            ok = journal_commit(self.committer.journal, NULL)
        return ok

    def commit_as_loop(self) -> bool:
        """Do the same as an I/O loop, which leaves to the journal thread everything that may have to wait."""
        cdef bint ok
        with nogil:
            ok = journal_commit(self.committer.journal, &self.waker)
        return ok

    def published(self) -> int:
        """Return the newest durable group."""
        return bk_load(&self.committer.journal.synced_group)

    def zeroed_to(self) -> int:
        """Return the position up to which the current file is zeroed."""
        return bk_load(&self.committer.journal.zeroed_to)

    def wait(self, int64_t group, double timeout_s) -> bool:
        """Wait for a group; return whether it was published in time."""
        cdef bint done
        cdef int64_t deadline = now_ns() + <int64_t> (timeout_s * 1e9)
        with nogil:
            done = await_group(self.committer.journal, group, deadline, &self.waker)
        return done

    def trim(self, int64_t mark_file_id) -> None:
        """Retire journal files, as a checkpoint does once a mark names this file."""
        with nogil:
            journal_trim(self.committer.journal, mark_file_id)

    def close(self) -> None:
        if self.waker.fd >= 0:
            discharge(self.committer.journal, &self.waker)
            close_fd(self.waker.fd)
            self.waker.fd = -1

    def __dealloc__(self):
        if self.committer is not None:
            self.close()


cdef class Held:
    """The result of a read: `status`, `count`, `next`, and memory that is pinned until `release`."""

    @property
    def status(self) -> str:
        return STATUS[<int> self.answer.status]

    @property
    def count(self) -> int:
        return self.answer.count

    @property
    def next(self) -> int:
        return self.answer.next

    @property
    def slices(self) -> int:
        return self.answer.slices

    def entries(self) -> list[bytes]:
        """Return the entries in the slices."""
        cdef uint32_t i
        cdef const uint8_t* at
        cdef const uint8_t* end
        found = []
        for i in range(self.answer.slices):
            at = self.answer.parts[i].base
            end = at + self.answer.parts[i].size
            while at != end:
                found.append((<const char*> at + LENGTH_PREFIX)[:load_u32(at)])
                at += LENGTH_PREFIX + load_u32(at)
        return found

    def release(self) -> None:
        """Unpin the memory. A second call does nothing."""
        answer_release(&self.answer)

    def __dealloc__(self):
        answer_release(&self.answer)


@cython.no_gc_clear
cdef class Direct:
    """The stores of a bookie as I/O loops see them. Keys have any length; entries begin with ledger and entry id."""

    def __cinit__(self, StorageEngine stores, ReadPoolWorkers pool=None):
        cdef uint32_t i
        self.stores_room = stores
        self.pool_room = pool
        self.stores = stores.stores
        self.pool = &pool.pool if pool is not None else NULL
        if not waker_init(&self.waker):
            raise OSError("no descriptor is left for a waker")
        pthread_mutex_init(&self.inbox.lock, NULL)
        self.inbox.waker = &self.waker
        for i in range(self.stores.journal_count):
            if not enlist(self.stores.journals[i], &self.waker):
                raise OSError("the journal has too many users")

    def add(self, const uint8_t[::1] entry not None, key: bytes = b"", *, recovery: bool = False,
            repair: bool = False) -> int:
        """Store one entry; return the journal group to wait for, or 0. Raises Refused."""
        cdef int64_t group = 0
        cdef Status status
        cdef const uint8_t* secret = key
        cdef uint32_t secret_size = <uint32_t> len(key)
        cdef AddKind kind = ADD_REPAIR if repair else ADD_RECOVERY if recovery else ADD_PLAIN
        if entry.shape[0] < 16:
            raise ValueError(f"the entry has {entry.shape[0]} bytes; it needs at least 16")
        with nogil:
            status = stores_add(self.stores, load_i64(&entry[0]), load_i64(&entry[8]), secret, secret_size, &entry[0],
                                <uint32_t> entry.shape[0], kind, &group)
        check(status)
        return group

    def fence(self, int64_t ledger, key: bytes = b"") -> int:
        """Fence a ledger, known or not; return the group to wait for. Raises Refused."""
        cdef int64_t group = 0
        check(stores_fence(self.stores, ledger, key, <uint32_t> len(key), &group))
        return group

    def write_lac(self, packet: bytes, key: bytes = b"") -> int:
        """Store an explicit LAC packet (`i64 ledger | i64 lac | digest`); return its group. Raises Refused."""
        cdef int64_t group = 0
        cdef const uint8_t* data = packet
        if len(packet) < 16:
            raise ValueError(f"the LAC packet has {len(packet)} bytes; it needs at least 16")
        check(stores_write_lac(self.stores, load_i64(data), key, <uint32_t> len(key), data, <uint32_t> len(packet),
                               &group))
        return group

    def write_close(self, int64_t ledger, key: bytes) -> None:
        """Announce that a ledger gets no more entries; an unknown ledger is no error. Raises Refused."""
        check(stores_write_close(self.stores, ledger, key, <uint32_t> len(key)))

    def commit(self) -> bool:
        """Make everything added durable, in this thread; return False after a failure."""
        cdef uint32_t i
        cdef bint ok = True
        with nogil:
            for i in range(self.stores.journal_count):
                ok = journal_commit(self.stores.journals[i], NULL) and ok
        return ok

    def wait(self, int64_t ledger, int64_t group, double timeout_s) -> bool:
        """Kick the ledger's journal and wait for a group; return whether it was published in time."""
        cdef Journal* journal = self.stores.journals[<uint64_t> ledger % self.stores.journal_count]
        cdef int64_t deadline = now_ns() + <int64_t> (timeout_s * 1e9)
        cdef bint done
        with nogil:
            journal_kick(journal)
            done = await_group(journal, group, deadline, &self.waker)
        return done

    def read(self, int64_t ledger, int64_t entry, *, uint32_t count=1, uint64_t size=0) -> Held:
        """Read up to `count` entries from `entry` on (-1: the last one), at most `size` bytes but always the first.

        The status is PENDING if the disk is needed and there is no pool.
        """
        cdef Held held = Held()
        cdef ReadRequest request
        cdef PoolJob* job
        cdef Status status
        memset(&request, 0, sizeof(ReadRequest))
        request.ledger = ledger
        request.entry = entry
        request.count = count
        request.bytes = size
        with nogil:
            answer_begin(&held.answer, &request)
            answer_from_memory(self.stores, &request, &held.answer)
        if held.answer.status != PENDING or self.pool == NULL:
            return held
        answer_release(&held.answer)
        with nogil:
            status = pool_submit(self.pool, &request, &self.queue, &self.inbox)
        check(status)
        with nogil:
            job = take_job(&self.inbox)
        held.answer = job.answer
        pool_free(self.pool, job)
        return held

    def ledger(self, int64_t ledger) -> LedgerState | None:
        """Return what the shard knows of a ledger, or None."""
        cdef Shard* shard = shard_of(store_of(self.stores, ledger), ledger)
        cdef Ledger* found
        pthread_mutex_lock(&shard.lock)
        found = ledger_find(&shard.ledgers, ledger)
        state = None if found == NULL else LedgerState(
            (<const char*> found.key)[:found.key_size], bool(found.fenced), bool(found.limbo),
            found.change != UNCHANGED, found.last, bool(found.last_known), found.lac,
            (<const char*> found.explicit_lac)[:found.explicit_lac_size] if found.explicit_lac != NULL else None)
        pthread_mutex_unlock(&shard.lock)
        return state

    def want_room(self, int64_t ledger) -> None:
        """Ask for a flush of the ledger's directory, as an add does that finds no room."""
        store_request_room(self.stores, store_of(self.stores, ledger))

    def wants_room(self, int64_t ledger) -> bool:
        """Return whether a flush that was asked for in this way has not been given yet."""
        return bk_load(&store_of(self.stores, ledger).job.room_wanted) != 0

    def pins(self) -> dict[str, int]:
        """Return the number of pins on the halves and on the ring, over all stores."""
        cdef Store* store
        halves = ring = 0
        for i in range(self.stores.count):
            store = self.stores.stores[i]
            halves += sum(bk_load(&store.kept.regions[j].pins) for j in range(REGIONS_MOST))
            ring += sum(bk_load(&store.ring.segments[j].region.pins) for j in range(store.ring.count))
        return {"halves": halves, "ring": ring}

    def close(self) -> None:
        """Close it before the journals, while nothing is being read."""
        cdef uint32_t i
        if self.waker.fd < 0:
            return
        for i in range(self.stores.journal_count):
            discharge(self.stores.journals[i], &self.waker)
        close_fd(self.waker.fd)
        self.waker.fd = -1
        pthread_mutex_destroy(&self.inbox.lock)

    def __dealloc__(self):
        if self.stores != NULL:
            self.close()


cdef PoolJob* take_job(Inbox* inbox) noexcept nogil:
    """Wait for the one job in progress."""
    cdef PoolJob* job
    while True:
        pthread_mutex_lock(&inbox.lock)
        job = inbox.jobs
        inbox.jobs = NULL
        pthread_mutex_unlock(&inbox.lock)
        if job != NULL:
            return job
        await_wake(inbox.waker)
