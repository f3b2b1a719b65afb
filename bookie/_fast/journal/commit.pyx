"""Group commit: appenders fill one group while the other is being written."""
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset
from posix.mman cimport MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE, mmap, munmap

from bookie._fast.base.bounds cimport group_capacity
from bookie._fast.base.cursor cimport store_i64, store_u32
from bookie._fast.base.fatal cimport fatal_is_set, fatal_set
from bookie._fast.base.file cimport Files
from bookie._fast.base.op_stats cimport op_note, op_view
from bookie._fast.base.planted cimport (
    PLANT_ACK_AFTER_FAILURE,
    PLANT_ACK_EARLY,
    PLANT_SKIP_SYNC,
    PLANT_UNFINISHED_RECORDS,
    PLANT_WAKE_LOST,
    bk_planted,
)
from bookie._fast.base.short_wait cimport wait_shortly
from bookie._fast.base.sync cimport (
    bk_add,
    bk_count,
    bk_fence,
    bk_load,
    bk_load_u64,
    bk_store,
    bk_store_u64,
    cond_init,
    cond_wait_until,
    now_ns,
    pthread_cond_broadcast,
    pthread_cond_signal,
    pthread_cond_wait,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_trylock,
    pthread_mutex_unlock,
)
from bookie._fast.base.waker cimport waker_wake
from bookie._fast.journal.files cimport (
    claim,
    close_with,
    files_fit,
    journal_bytes_since,
    journal_mark,
    journal_prepare,
    out_of_space,
    prepare_next,
    roll,
    write_waiting,
)
from bookie._fast.journal.reader cimport GROUP_PAD_MIN
from bookie._fast.journal.state cimport DIRECT_BLOCK, ZERO_CHUNK, Group
from bookie._fast.journal.stats cimport JournalOps, JournalStats

cdef enum:
    SYNC_PERIOD_NS = 1000000000
    FIRST_FILE_PAUSE_NS = 100000000      # between two attempts on a full disk


cdef int64_t reserve(Journal* journal, uint32_t size, Group** group, uint8_t** out) noexcept nogil:
    """Reserve space for a record in the open group; the caller copies it and then decrements `writers`."""
    cdef int64_t number = 0
    cdef Group* open_group
    pthread_mutex_lock(&journal.lock)
    open_group = &journal.groups[journal.active]
    if journal.group_capacity - open_group.used >= <uint64_t> size + 4:
        out[0] = open_group.base + open_group.used
        group[0] = open_group
        if open_group.used == 0:
            journal.oldest_ns = now_ns()
        bk_store_u64(&open_group.used, open_group.used + size + 4)
        open_group.entries += 1
        bk_add(&open_group.writers, 1)
        number = journal.open_group
    pthread_mutex_unlock(&journal.lock)
    return number


cdef int64_t journal_append(Journal* journal, const uint8_t* data, uint32_t size) noexcept nogil:
    cdef Group* group
    cdef uint8_t* out
    cdef int64_t number = reserve(journal, size, &group, &out)
    if number == 0:
        return 0
    store_u32(out, size)
    memcpy(out + 4, data, size)
    bk_add(&group.writers, -1)
    return number


cdef int64_t journal_append_meta(Journal* journal, int64_t ledger, int64_t kind, const uint8_t* data,
                                 uint32_t size) noexcept nogil:
    """Append a record of ledger and kind, and for a key or LAC also u32 size and data; a fence has `data` NULL."""
    cdef Group* group
    cdef uint8_t* out
    cdef uint32_t total = 16 if data == NULL else 20 + size
    cdef int64_t number = reserve(journal, total, &group, &out)
    if number == 0:
        return 0
    store_u32(out, total)
    store_i64(out + 4, ledger)
    store_i64(out + 12, kind)
    if data != NULL:
        store_u32(out + 20, size)
        memcpy(out + 24, data, size)
    bk_add(&group.writers, -1)
    return number


cdef bint journal_has_room(Journal* journal, uint32_t size) noexcept nogil:
    """Estimate without the lock whether an append fits; one that fails is repeated."""
    return journal.group_capacity - bk_load_u64(&journal.groups[bk_load(&journal.active)].used) >= <uint64_t> size + 4


cdef void journal_kick(Journal* journal) noexcept nogil:
    pthread_cond_signal(&journal.filled)


cdef bint journal_idle(Journal* journal) noexcept nogil:
    """Return whether all groups are synced, and the open group fits into the zeroed part of the file."""
    return (
        bk_load(&journal.synced_group) == bk_load(&journal.open_group) - 1
        and <int64_t> (bk_load_u64(&journal.position) + bk_load_u64(&journal.groups[bk_load(&journal.active)].used)
                       + 3 * journal.alignment)
        <= bk_load(&journal.zeroed_to)
    )


cdef int64_t journal_last_group(Journal* journal) noexcept nogil:
    cdef int64_t number
    pthread_mutex_lock(&journal.lock)
    number = journal.open_group if journal.groups[journal.active].used else journal.open_group - 1
    pthread_mutex_unlock(&journal.lock)
    return number


cdef uint64_t close_group(Journal* journal, Group* group) noexcept nogil:
    """Pad the group to the alignment; return the bytes of the closed group."""
    cdef uint64_t pad = journal.alignment - group.used % journal.alignment
    if pad < GROUP_PAD_MIN:
        pad += journal.alignment
    close_with(group.base, group.used, pad, journal.position, journal.file_id)
    if journal.recycled:
        # A zero length word ends the file for readers that know no checksums.
        memset(group.base + group.used + pad, 0, journal.alignment)
    return group.used + pad


cdef void publish(Journal* journal, int64_t number, const Waker* committer) noexcept nogil:
    """Publish that everything up to this group is durable, and wake the loops that wait to acknowledge it."""
    cdef int i
    bk_store(&journal.synced_group, number)
    bk_fence()                                      # a loop that begins to wait (server.acks) sees this or is seen
    for i in range(journal.waker_count):
        if journal.wakers[i] != committer and bk_load(&journal.wakers[i].waiting) and not bk_planted(PLANT_WAKE_LOST):
            waker_wake(journal.wakers[i])


cdef void publish_written(Journal* journal, const Waker* committer) noexcept nogil:
    """Publish that the group is written, and wake the loops with adds that are acknowledged before the sync."""
    cdef int i
    bk_store(&journal.written_group, journal.unwritten_number)
    bk_fence()                                      # as in `publish`
    for i in range(journal.waker_count):
        if journal.wakers[i] != committer and bk_load(&journal.wakers[i].waiting_written):
            waker_wake(journal.wakers[i])


cdef void hand_over(Journal* journal) noexcept nogil:
    """Leave the full disk to the journal thread, which waits for space while the committing loop goes on serving."""
    pthread_mutex_lock(&journal.lock)
    bk_store(&journal.handed_over, 1)
    pthread_cond_signal(&journal.filled)
    pthread_mutex_unlock(&journal.lock)


cdef bint close_open_group(Journal* journal, const Waker* committer) noexcept nogil:
    """Make the open group the unwritten one, if it holds anything. Return False after a failure.

    If a new file is due, a loop leaves it to the journal thread, because it may have to wait for space.
    """
    cdef Group* group
    cdef bint rolls
    cdef int rc
    cdef uint32_t looks = 0
    pthread_mutex_lock(&journal.lock)
    group = &journal.groups[journal.active]
    rolls = journal.position + group.used + 2 * journal.alignment > journal.file_bytes_max
    if rolls and committer != NULL:
        pthread_cond_signal(&journal.filled)
    if group.used == 0 or (rolls and committer != NULL):
        pthread_mutex_unlock(&journal.lock)
        return True
    bk_store(&journal.active, journal.active ^ 1)
    journal.unwritten_number = journal.open_group
    journal.unwritten_since = journal.oldest_ns
    bk_store(&journal.open_group, journal.open_group + 1)
    pthread_mutex_unlock(&journal.lock)
    while bk_load(&group.writers) != 0 and not bk_planted(PLANT_UNFINISHED_RECORDS):
        wait_shortly(&looks)
    if rolls:
        rc = roll(journal)
        if rc != 0:
            fatal_set("journal: starting a new file failed", -rc)
            return False
    if bk_planted(PLANT_ACK_EARLY):
        publish(journal, journal.unwritten_number, committer)
    journal.unwritten_bytes = close_group(journal, group)
    journal.unwritten = group
    return True


cdef bint write_unwritten(Journal* journal, Waker* committer) noexcept nogil:
    """Write and sync the unwritten group and tell the loops. Return False after a failure."""
    cdef Group* group = journal.unwritten
    cdef int64_t started, written, synced
    cdef uint64_t extra = journal.alignment if journal.recycled else 0
    cdef int rc
    claim(journal, <int64_t> (journal.position + journal.unwritten_bytes + extra))
    started = now_ns()
    rc = write_waiting(journal, group.base, journal.unwritten_bytes + extra, journal.position, committer == NULL)
    if out_of_space(rc) and committer != NULL:
        hand_over(journal)
        return True
    written = now_ns()
    if rc == 0:
        publish_written(journal, committer)
    if rc == 0 and journal.sync_data and not (bk_planted(PLANT_SKIP_SYNC) and journal.unwritten_number & 1):
        rc = journal.ops.fdatasync(journal.fd)
    if rc != 0 and not bk_planted(PLANT_ACK_AFTER_FAILURE):
        fatal_set("journal: write or sync failed", -rc)
        return False
    synced = now_ns()
    bk_count(&journal.stats.sync_ns, synced - started)
    op_note(&journal.times.queued, started - journal.unwritten_since, 1)
    op_note(&journal.times.write, written - started, 1)
    op_note(&journal.times.sync, synced - written, 1)
    op_note(&journal.times.group_entries, group.entries, 1)
    op_note(&journal.times.group_bytes, <int64_t> journal.unwritten_bytes, 1)
    bk_count(&journal.stats.groups, 1)
    journal.stats.entries += group.entries
    journal.stats.bytes += journal.unwritten_bytes
    pthread_mutex_lock(&journal.mark_lock)
    bk_store_u64(&journal.position, journal.position + journal.unwritten_bytes)
    journal.mark_offset = journal.position
    pthread_mutex_unlock(&journal.mark_lock)
    bk_store_u64(&group.used, 0)
    group.entries = 0
    journal.unwritten = NULL
    bk_store(&journal.handed_over, 0)
    publish(journal, journal.unwritten_number, committer)
    if <int64_t> (journal.position + journal.prealloc_bytes // 2) > bk_load(&journal.zeroed_to):
        pthread_cond_signal(&journal.prepare_wanted)
    return True


cdef bint commit_locked(Journal* journal, Waker* committer) noexcept nogil:
    if fatal_is_set():
        return False
    if journal.unwritten != NULL:
        if committer != NULL:
            return True              # it waits for space already, and the journal thread with it
        if not write_unwritten(journal, committer):
            return False
    if not close_open_group(journal, committer):
        return False
    return journal.unwritten == NULL or write_unwritten(journal, committer)


cdef bint journal_commit(Journal* journal, Waker* committer) noexcept nogil:
    cdef bint ok
    if committer == NULL:
        pthread_mutex_lock(&journal.commit_lock)
    elif pthread_mutex_trylock(&journal.commit_lock) != 0:
        journal_kick(journal)        # the committer may be waiting for space on the disk, which a loop must not do
        return True
    ok = commit_locked(journal, committer)
    pthread_mutex_unlock(&journal.commit_lock)
    return ok


cdef bint await_group(Journal* journal) noexcept nogil:
    """Wait until the open group is due by the group policy; return False when stopping and nothing is left."""
    cdef Group* group
    cdef int64_t deadline
    cdef bint more
    pthread_mutex_lock(&journal.lock)
    while journal.groups[journal.active].used == 0 and not bk_load(&journal.handed_over) and not journal.stopping:
        pthread_cond_wait(&journal.filled, &journal.lock)
    if journal.flush_when_empty or journal.group_wait_ns <= 0:
        journal.stats.flush_empty += 1
    else:
        deadline = journal.oldest_ns + journal.group_wait_ns
        while not journal.stopping:
            group = &journal.groups[journal.active]
            if group.used > journal.group_bytes or (journal.group_entries and group.entries > journal.group_entries):
                journal.stats.flush_bytes += 1
                break
            if cond_wait_until(&journal.filled, &journal.lock, deadline):
                journal.stats.flush_wait += 1
                break
    # Another committer may have committed the group meanwhile: only the end of the journal ends its thread.
    more = not journal.stopping or journal.groups[journal.active].used != 0
    pthread_mutex_unlock(&journal.lock)
    return more


cdef bint await_first_file(Journal* journal) noexcept nogil:
    """Wait in the background for space for the first file, if `open` found none. Return False if the journal stops."""
    cdef int rc
    while journal.fd < 0 and not journal.stopping and not fatal_is_set():
        rc = 0
        pthread_mutex_lock(&journal.prepare_lock)
        if journal.next_fd < 0:
            rc = prepare_next(journal)
        pthread_mutex_unlock(&journal.prepare_lock)
        if rc == 0:
            pthread_mutex_lock(&journal.commit_lock)
            rc = roll(journal)
            pthread_mutex_unlock(&journal.commit_lock)
        if rc == 0:
            bk_store(&journal.full, 0)
        elif out_of_space(rc):
            pthread_mutex_lock(&journal.lock)
            if not journal.stopping:
                cond_wait_until(&journal.filled, &journal.lock, now_ns() + FIRST_FILE_PAUSE_NS)
            pthread_mutex_unlock(&journal.lock)
        else:
            fatal_set("journal: starting a new file failed", -rc)
    return journal.fd >= 0


cdef class JournalCommitter:
    """The journal of one directory. `open` begins a new file; `run`, `run_prepare` and `run_sync` are its threads.

    Sizes are in bytes. ValueError if the name of the directory is too long.
    """

    def __cinit__(self):
        self.journal = <Journal*> calloc(1, sizeof(Journal))
        if self.journal == NULL:
            raise MemoryError
        self.journal.fd = -1
        self.journal.next_fd = -1
        pthread_mutex_init(&self.journal.lock, NULL)
        pthread_mutex_init(&self.journal.commit_lock, NULL)
        pthread_mutex_init(&self.journal.mark_lock, NULL)
        pthread_mutex_init(&self.journal.prepare_lock, NULL)
        cond_init(&self.journal.filled)
        cond_init(&self.journal.prepare_wanted)
        cond_init(&self.journal.sync_wanted)

    def __init__(self, directory: str, Files files, *, buffer_bytes: int, alignment_bytes: int, file_bytes_max: int,
                 prealloc_bytes: int, backups_max: int, group_wait_ms: float, group_bytes: int, group_entries: int,
                 flush_when_empty: bool, sync_data: bool, reuse_files: bool, hurry_bytes: int = INT64_MAX,
                 backlog_bytes_max: int = INT64_MAX):
        cdef Journal* journal = self.journal
        cdef uint64_t size
        encoded = directory.encode()
        if len(encoded) >= sizeof(journal.directory):
            raise ValueError(f"journal directory name is longer than {sizeof(journal.directory)} bytes: {directory}")
        self.files = files
        journal.ops = files.ops
        memcpy(journal.directory, <const char*> encoded, len(encoded) + 1)
        journal.alignment = alignment_bytes
        journal.direct = alignment_bytes % DIRECT_BLOCK == 0
        journal.file_bytes_max = file_bytes_max
        journal.prealloc_bytes = max(prealloc_bytes // ZERO_CHUNK, 1) * ZERO_CHUNK
        journal.backups_max = backups_max
        journal.group_wait_ns = <int64_t> (group_wait_ms * 1e6)
        journal.group_bytes = group_bytes
        journal.group_entries = group_entries
        journal.flush_when_empty = flush_when_empty
        journal.sync_data = sync_data
        journal.reuse = reuse_files
        journal.backlog.hurry_bytes = hurry_bytes
        journal.backlog.most_bytes = backlog_bytes_max
        size = buffer_bytes // 2 // DIRECT_BLOCK * DIRECT_BLOCK
        journal.group_capacity = group_capacity(buffer_bytes, journal.alignment)
        self.mapped = size + DIRECT_BLOCK + ZERO_CHUNK
        for i in range(2):
            journal.groups[i].base = map_pages(self.mapped) + DIRECT_BLOCK + ZERO_CHUNK
        journal.open_group = 1

    def open(self, first_id: int, existing: list[int]) -> bool:
        """Begin file `first_id`; `existing` are the ids of older files on disk, ascending. OSError if that fails.

        Return False on a full disk: then the journal accepts nothing until `run` has found space for the file.
        """
        cdef Journal* journal = self.journal
        cdef int rc = 0
        if not files_fit(journal, len(existing) + 1):
            raise MemoryError(f"no memory for the ids of {len(existing)} journal files")
        for i, file_id in enumerate(existing):
            journal.files[i] = file_id
        journal.file_count = len(existing)
        journal.file_id = first_id - 1
        with nogil:
            pthread_mutex_lock(&journal.prepare_lock)
            rc = prepare_next(journal)
            pthread_mutex_unlock(&journal.prepare_lock)
            if rc == 0:
                pthread_mutex_lock(&journal.commit_lock)
                rc = roll(journal)
                pthread_mutex_unlock(&journal.commit_lock)
        if out_of_space(rc):
            journal.position = journal.file_bytes_max
            bk_store(&journal.full, 1)
            return False
        if rc != 0:
            raise OSError(-rc, "cannot create a journal file", journal.directory.decode())
        return True

    def run(self) -> None:
        """Commit groups until `stop`, and then the rest. The body of the journal thread."""
        cdef Journal* journal = self.journal
        with nogil:
            if await_first_file(journal):
                while await_group(journal):
                    if not journal_commit(journal, NULL):
                        break

    def run_prepare(self) -> None:
        """Prepare the next file, and zeros ahead in the current one, until `stop`. The body of the preparing thread."""
        with nogil:
            journal_prepare(self.journal)

    def run_sync(self) -> None:
        """Sync an unsynced journal (`journalSyncData=false`) each second until `stop`. The body of its own thread."""
        cdef Journal* journal = self.journal
        cdef int rc
        with nogil:
            while not bk_load(&journal.stopping) and not fatal_is_set():
                pthread_mutex_lock(&journal.lock)
                cond_wait_until(&journal.sync_wanted, &journal.lock, now_ns() + SYNC_PERIOD_NS)
                pthread_mutex_unlock(&journal.lock)
                pthread_mutex_lock(&journal.commit_lock)
                rc = journal.ops.fdatasync(journal.fd) if journal.fd >= 0 else 0
                pthread_mutex_unlock(&journal.commit_lock)
                if rc != 0:
                    fatal_set("journal: sync failed", -rc)

    def stop(self) -> None:
        """Ask the threads to end; everything appended is still committed."""
        cdef Journal* journal = self.journal
        with nogil:
            pthread_mutex_lock(&journal.lock)
            bk_store(&journal.stopping, 1)
            pthread_cond_broadcast(&journal.filled)
            pthread_cond_broadcast(&journal.sync_wanted)
            pthread_mutex_unlock(&journal.lock)
            pthread_cond_broadcast(&journal.prepare_wanted)

    def sync(self) -> bool:
        """Commit the open group and sync the file; for unsynced journals and shutdown. Return False after a failure."""
        cdef Journal* journal = self.journal
        cdef bint ok
        cdef int rc = 0
        with nogil:
            ok = journal_commit(journal, NULL)
            pthread_mutex_lock(&journal.commit_lock)
            if ok and not journal.sync_data and journal.fd >= 0:
                rc = journal.ops.fdatasync(journal.fd)
            pthread_mutex_unlock(&journal.commit_lock)
            if rc != 0:
                fatal_set("journal: sync failed", -rc)
        return ok and rc == 0

    def mark(self) -> tuple[int, int]:
        """Return the (file id, offset) up to which everything is on disk."""
        cdef int64_t file_id
        cdef uint64_t offset
        journal_mark(self.journal, &file_id, &offset)
        return file_id, offset

    def file_ids(self) -> list[int]:
        return [self.journal.files[i] for i in range(self.journal.file_count)]

    def stats(self) -> dict[str, int]:
        cdef JournalStats* stats = &self.journal.stats
        return {
            "groups": stats.groups,
            "entries": stats.entries,
            "bytes": stats.bytes,
            "sync_ns": stats.sync_ns,
            "flush_empty": stats.flush_empty,
            "flush_wait": stats.flush_wait,
            "flush_bytes": stats.flush_bytes,
            "queued_bytes": self.journal.groups[0].used + self.journal.groups[1].used,
            "queued_records": self.journal.groups[self.journal.active].entries,
            "groups_in_write": bk_load(&self.journal.open_group) - 1 - bk_load(&self.journal.synced_group),
            "buffer_bytes": 2 * self.journal.group_capacity,
            "backlog_bytes": journal_bytes_since(self.journal, self.journal.backlog.kept_from),
            "at_limit": bk_load(&self.journal.backlog.at_limit),
        }

    def ops(self) -> dict[str, OpView]:
        """Return OpViews of times in ns, and of entries and bytes of groups. All succeeded; a failure is fatal."""
        cdef JournalOps* times = &self.journal.times
        return {
            "queued": op_view(&times.queued),
            "write": op_view(&times.write),
            "sync": op_view(&times.sync),
            "created": op_view(&times.created),
            "group_entries": op_view(&times.group_entries),
            "group_bytes": op_view(&times.group_bytes),
        }

    def close(self) -> None:
        """Close the files, after the threads have ended."""
        cdef Journal* journal = self.journal
        if journal.fd >= 0:
            journal.ops.close(journal.fd)
            journal.ops.close(journal.zeros_fd)
            journal.fd = -1
        if journal.next_fd >= 0:
            journal.ops.close(journal.next_fd)
            journal.ops.close(journal.next_zeros_fd)
            journal.next_fd = -1

    def __dealloc__(self):
        cdef Journal* journal = self.journal
        if journal == NULL:
            return
        for i in range(2):
            if journal.groups[i].base != NULL:
                munmap(journal.groups[i].base - DIRECT_BLOCK - ZERO_CHUNK, self.mapped)
        free(journal.files)
        free(journal)


cdef uint8_t* map_pages(uint64_t size) except NULL:
    cdef void* base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    if base == MAP_FAILED:
        raise MemoryError
    return <uint8_t*> base
