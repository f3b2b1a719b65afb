"""The files of a journal: preparing the next one, zeros ahead of the groups, rolling, retiring old ones."""
from libc.errno cimport EDQUOT, ENOSPC
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport realloc
from libc.string cimport memmove, memset
from posix.fcntl cimport O_CREAT, O_RDWR, O_TRUNC

from bookie._fast.base.cursor cimport store_i64, store_u32
from bookie._fast.base.fatal cimport fatal_is_set, fatal_set
from bookie._fast.base.file cimport PRIVATE_MODE, set_direct, sync_dir, write_full
from bookie._fast.base.op_stats cimport op_note
from bookie._fast.base.planted cimport (
    PLANT_FULL_IS_WRITTEN,
    PLANT_TRIM_MARKED,
    PLANT_TRIM_WAITS,
    PLANT_ZEROS_OVER_GROUPS,
    bk_planted,
)
from bookie._fast.base.sync cimport (
    bk_load,
    bk_load_u64,
    bk_store,
    bk_store_u64,
    cond_wait_until,
    now_ns,
    pthread_cond_signal,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)
from bookie._fast.journal.reader cimport (
    GROUP_CLOSE_BYTES,
    GROUP_MAGIC,
    JOURNAL_HEADER_BYTES,
    PADDING_MARK,
    group_crc,
    journal_header,
)
from bookie._fast.journal.state cimport DIRECT_BLOCK, FILES_ROOM, SPARES_MOST, ZERO_CHUNK

cdef extern from "<fcntl.h>" nogil:
    int O_CLOEXEC

cdef extern from "<unistd.h>" nogil:
    int usleep(unsigned int microseconds) noexcept

cdef enum:
    PATH_BYTES = 4096
    ZERO_STEP = 4 << 20
    SPARES_LEAST = 2             # used files that are kept for reuse, however few a trim retires
    FULL_PAUSE_US = 100000       # between two attempts on a full disk
    PREPARE_PAUSE_NS = 100000000


cdef void close_with(uint8_t* group, uint64_t used, uint64_t pad, uint64_t start, int64_t file_id) noexcept nogil:
    cdef uint8_t* out = group + used
    store_u32(out, <uint32_t> PADDING_MARK)
    store_u32(out + 4, <uint32_t> (pad - 8))
    store_u32(out + 8, GROUP_MAGIC)
    store_u32(out + 16, <uint32_t> (used + 8))
    store_u32(out + 20, <uint32_t> start)
    store_i64(out + 24, file_id)
    store_u32(out + 12, group_crc(group, used + 8, out + 8))
    memset(out + 8 + GROUP_CLOSE_BYTES, 0, pad - 8 - GROUP_CLOSE_BYTES)


cdef bint out_of_space(int rc) noexcept nogil:
    return rc == -ENOSPC or rc == -EDQUOT


cdef bint wait_for_space(Journal* journal, int rc, bint patient) noexcept nogil:
    """Return whether to repeat a refused write, on a full disk. Meanwhile the bookie accepts no adds (`full`)."""
    if not out_of_space(rc) or bk_load(&journal.stopping) or fatal_is_set():
        return False
    bk_store(&journal.full, 1)
    if not patient:
        return False
    usleep(FULL_PAUSE_US)
    return True


cdef int write_waiting(Journal* journal, const uint8_t* data, uint64_t size, uint64_t offset,
                       bint patient) noexcept nogil:
    cdef int rc = write_full(journal.ops, journal.fd, data, size, <int64_t> offset)
    if out_of_space(rc) and bk_planted(PLANT_FULL_IS_WRITTEN):
        return 0
    while rc != 0 and wait_for_space(journal, rc, patient):
        rc = write_full(journal.ops, journal.fd, data, size, <int64_t> offset)
    if rc == 0 and journal.full:
        bk_store(&journal.full, 0)
    return rc


cdef void path_of(Journal* journal, char* out, int64_t file_id, const char* suffix) noexcept nogil:
    snprintf(out, PATH_BYTES, "%s/%llx.%s", journal.directory, <unsigned long long> file_id, suffix)


cdef int open_file(Journal* journal, const char* path, int flags) noexcept nogil:
    cdef int fd = journal.ops.open(path, O_RDWR | O_CLOEXEC | flags, PRIVATE_MODE)
    if fd >= 0 and journal.direct:
        set_direct(fd, True)
    return fd


cdef int write_first_block(Journal* journal, int fd, int64_t file_id) noexcept nogil:
    """Write the header, and padding up to the first block where groups may start."""
    cdef uint8_t* block = journal.groups[0].base - DIRECT_BLOCK
    journal_header(block)
    close_with(block + JOURNAL_HEADER_BYTES, 0, DIRECT_BLOCK - JOURNAL_HEADER_BYTES, JOURNAL_HEADER_BYTES, file_id)
    return write_full(journal.ops, fd, block, DIRECT_BLOCK, 0)


cdef int zero(Journal* journal, int fd, int64_t start, int64_t end) noexcept nogil:
    """Write zeros ahead of the groups; once they are synced, syncing a group changes neither size nor extents."""
    cdef uint8_t* zeros = journal.groups[1].base - DIRECT_BLOCK - ZERO_CHUNK
    cdef int64_t at = start
    cdef int64_t part
    cdef int rc
    while at < end:
        part = end - at
        if part > ZERO_CHUNK:
            part = ZERO_CHUNK
        rc = write_full(journal.ops, fd, zeros, part, at)
        if rc != 0:
            return rc
        at += part
    return 0


cdef int prepare_next(Journal* journal) noexcept nogil:
    """Prepare the next file under a name that replay ignores. The caller holds prepare_lock."""
    cdef char path[PATH_BYTES]
    cdef char spare[PATH_BYTES]
    cdef int64_t next_id, spare_id
    cdef int fd, rc
    cdef int zeros_fd = -1
    pthread_mutex_lock(&journal.mark_lock)
    next_id = journal.file_id + 1
    spare_id = 0
    if journal.spare_count:
        journal.spare_count -= 1
        spare_id = journal.spares[journal.spare_count]
    pthread_mutex_unlock(&journal.mark_lock)
    path_of(journal, path, next_id, "preparing")
    if spare_id:
        path_of(journal, spare, spare_id, "spare")
        rc = journal.ops.rename(spare, path)
        if rc != 0:
            return rc
    fd = open_file(journal, path, O_CREAT if spare_id else O_CREAT | O_TRUNC)
    if fd < 0:
        return fd
    rc = write_first_block(journal, fd, next_id)
    if rc == 0 and not spare_id:
        rc = zero(journal, fd, DIRECT_BLOCK, <int64_t> journal.prealloc_bytes)
    if rc == 0:
        rc = journal.ops.fdatasync(fd)
    if rc == 0:
        # Linux reports a writeback error once for each open file: a group's sync must get its own.
        zeros_fd = open_file(journal, path, 0)
        rc = min(zeros_fd, 0)
    if rc != 0:
        journal.ops.close(fd)
        journal.ops.unlink(path)
        return rc
    journal.next_fd = fd
    journal.next_zeros_fd = zeros_fd
    journal.next_recycled = spare_id != 0
    journal.next_zeroed = <int64_t> (journal.file_bytes_max if spare_id else journal.prealloc_bytes)
    return 0


cdef int name_next(Journal* journal) noexcept nogil:
    """Give the prepared file its name. The old file is synced first, because replay takes files in order."""
    cdef char preparing[PATH_BYTES]
    cdef char path[PATH_BYTES]
    cdef int rc = 0
    path_of(journal, preparing, journal.file_id + 1, "preparing")
    path_of(journal, path, journal.file_id + 1, "txn")
    if not journal.sync_data and journal.fd >= 0:
        rc = journal.ops.fdatasync(journal.fd)
    if rc == 0:
        rc = journal.ops.rename(preparing, path)
    if rc == 0:
        rc = sync_dir(journal.ops, journal.directory)
    return rc


cdef int64_t bytes_since(const Journal* journal, int64_t file_id) noexcept nogil:
    cdef int64_t count = 0
    while count < journal.file_count and journal.files[journal.file_count - 1 - count] >= file_id:
        count += 1
    if count == 0:
        return 0
    return (count - 1) * <int64_t> journal.file_bytes_max + <int64_t> journal.mark_offset


cdef void judge_backlog(Journal* journal) noexcept nogil:
    """Record whether checkpoints lag behind so far that the journal's disk is at risk. The caller holds mark_lock."""
    cdef int64_t backlog = bytes_since(journal, journal.backlog.kept_from)
    bk_store(&journal.backlog.hurry, backlog > journal.backlog.hurry_bytes)
    bk_store(&journal.backlog.at_limit, backlog > journal.backlog.most_bytes)


cdef int64_t journal_bytes_since(Journal* journal, int64_t file_id) noexcept nogil:
    cdef int64_t size
    pthread_mutex_lock(&journal.mark_lock)
    size = bytes_since(journal, file_id)
    pthread_mutex_unlock(&journal.mark_lock)
    return size


cdef bint files_fit(Journal* journal, int64_t count) noexcept nogil:
    cdef int64_t* larger
    if count > journal.file_room:
        count = max(count, 2 * journal.file_room, FILES_ROOM)
        larger = <int64_t*> realloc(journal.files, <size_t> count * sizeof(int64_t))
        if larger == NULL:
            return False
        journal.files, journal.file_room = larger, count
    return True


cdef void add_file(Journal* journal) noexcept nogil:
    """Note the id of the current file. The caller holds mark_lock.

    Without memory for it the oldest is forgotten: the next start, which lists the directory, removes that file.
    """
    if not files_fit(journal, journal.file_count + 1):
        journal.file_count -= 1
        journal.retiring = max(journal.retiring - 1, 0)
        memmove(&journal.files[0], &journal.files[1], <size_t> journal.file_count * sizeof(int64_t))
    journal.files[journal.file_count] = journal.file_id
    journal.file_count += 1


cdef int roll(Journal* journal) noexcept nogil:
    """Continue in the next file, which is normally prepared already. The caller holds commit_lock."""
    cdef int rc = 0
    cdef int64_t started = now_ns()
    pthread_mutex_lock(&journal.prepare_lock)
    if journal.next_fd < 0:
        rc = prepare_next(journal)
        while rc != 0 and wait_for_space(journal, rc, True):
            rc = prepare_next(journal)
    if rc == 0:
        rc = name_next(journal)
    if rc != 0:
        pthread_mutex_unlock(&journal.prepare_lock)
        return rc
    if journal.fd >= 0:
        journal.ops.close(journal.fd)
        journal.ops.close(journal.zeros_fd)
    pthread_mutex_lock(&journal.mark_lock)
    journal.fd = journal.next_fd
    journal.zeros_fd = journal.next_zeros_fd
    journal.recycled = journal.next_recycled
    bk_store_u64(&journal.position, DIRECT_BLOCK)
    journal.file_id += 1
    journal.mark_offset = DIRECT_BLOCK
    add_file(journal)
    judge_backlog(journal)
    bk_store(&journal.zeroed_to, journal.next_zeroed)
    pthread_mutex_unlock(&journal.mark_lock)
    journal.next_fd = -1
    pthread_cond_signal(&journal.prepare_wanted)
    pthread_mutex_unlock(&journal.prepare_lock)
    op_note(&journal.times.created, now_ns() - started, 1)
    return 0


cdef void journal_mark(Journal* journal, int64_t* file_id, uint64_t* offset) noexcept nogil:
    pthread_mutex_lock(&journal.mark_lock)
    file_id[0] = journal.file_id if journal.fd >= 0 else 0
    offset[0] = journal.mark_offset
    pthread_mutex_unlock(&journal.mark_lock)


cdef void journal_trim(Journal* journal, int64_t mark_file_id) noexcept nogil:
    """Give up the files below the mark, except the newest `backups_max`: they are kept for reuse, or removed.

    As many are kept as one trim has given up, and one less at each trim after that: writing fills as many new files
    until the next trim, and a used one needs no zeros ahead.
    """
    cdef int64_t below = 0
    cdef int wanted
    cdef bint prepared
    pthread_mutex_lock(&journal.mark_lock)
    while below < journal.file_count and journal.files[below] < mark_file_id + bk_planted(PLANT_TRIM_MARKED):
        below += 1
    journal.retiring = max(below - journal.backups_max, 0)
    wanted = <int> min(journal.retiring, <int64_t> SPARES_MOST)
    journal.spares_wanted = max(SPARES_LEAST, wanted, journal.spares_wanted - 1)
    journal.backlog.kept_from = mark_file_id
    judge_backlog(journal)
    prepared = journal.prepared and not bk_planted(PLANT_TRIM_WAITS)
    pthread_mutex_unlock(&journal.mark_lock)
    if prepared:
        pthread_cond_signal(&journal.prepare_wanted)
    else:
        retire_all(journal)


cdef bint retires(Journal* journal) noexcept nogil:
    """Return whether a file is to be kept for reuse or removed. The caller holds mark_lock."""
    return journal.retiring > 0 or journal.spare_count > journal.spares_wanted


cdef bint is_to_retire(Journal* journal) noexcept nogil:
    cdef bint more
    pthread_mutex_lock(&journal.mark_lock)
    more = retires(journal)
    pthread_mutex_unlock(&journal.mark_lock)
    return more


cdef void retire(Journal* journal) noexcept nogil:
    """Keep or remove the oldest file that was given up. The disk may take long for it, so no lock is held meanwhile:
    commits take `mark_lock`, and wait for `prepare_lock`.
    """
    cdef char path[PATH_BYTES]
    cdef char spare[PATH_BYTES]
    cdef int64_t file_id = 0
    cdef bint keep
    pthread_mutex_lock(&journal.mark_lock)
    keep = journal.reuse and journal.spare_count < journal.spares_wanted
    if journal.retiring > 0:
        file_id = journal.files[0]
        journal.file_count -= 1
        journal.retiring -= 1
        memmove(&journal.files[0], &journal.files[1], <size_t> journal.file_count * sizeof(int64_t))
        path_of(journal, path, file_id, "txn")
    elif retires(journal):
        journal.spare_count -= 1
        file_id = journal.spares[journal.spare_count]
        keep = False
        path_of(journal, path, file_id, "spare")
    pthread_mutex_unlock(&journal.mark_lock)
    if file_id == 0:
        return
    if not keep:
        journal.ops.unlink(path)
        return
    path_of(journal, spare, file_id, "spare")
    if journal.ops.rename(path, spare) == 0:
        pthread_mutex_lock(&journal.mark_lock)
        journal.spares[journal.spare_count] = file_id
        journal.spare_count += 1
        pthread_mutex_unlock(&journal.mark_lock)


cdef void retire_all(Journal* journal) noexcept nogil:
    while is_to_retire(journal):
        retire(journal)


cdef int zero_ahead(Journal* journal) noexcept nogil:
    """Extend the current file's zeros by one step. Holding prepare_lock keeps out `roll` and `claim`."""
    cdef int64_t zeroed = bk_load(&journal.zeroed_to)
    cdef int64_t end = zeroed + ZERO_STEP
    cdef int rc
    if end > <int64_t> journal.file_bytes_max:
        end = <int64_t> journal.file_bytes_max
    rc = zero(journal, journal.zeros_fd, zeroed, end)
    if rc != 0:
        return rc
    rc = journal.ops.fdatasync(journal.zeros_fd)
    if rc == 0:
        bk_store(&journal.zeroed_to, end)
    else:
        # Groups lie in this file, and a later sync would not report what was lost, so this is fatal, on a full disk
        # too.
        fatal_set("journal: sync of the zeros ahead failed", -rc)
    return rc


cdef void journal_prepare(Journal* journal) noexcept nogil:
    cdef int rc = 0
    pthread_mutex_lock(&journal.mark_lock)
    journal.prepared = True
    pthread_mutex_unlock(&journal.mark_lock)
    pthread_mutex_lock(&journal.prepare_lock)
    while not bk_load(&journal.stopping) and not fatal_is_set():
        if not out_of_space(rc) and journal.fd >= 0 and wants_zeros(journal):
            rc = zero_ahead(journal)
        elif (not out_of_space(rc) and journal.next_fd < 0
              and bk_load_u64(&journal.position) > journal.file_bytes_max // 2):
            rc = prepare_next(journal)
        elif is_to_retire(journal):
            rc = 0               # a full disk may have space then
            pthread_mutex_unlock(&journal.prepare_lock)
            retire(journal)
            pthread_mutex_lock(&journal.prepare_lock)
        else:
            rc = 0               # wait a while on a full disk; the groups will meet it themselves
            cond_wait_until(&journal.prepare_wanted, &journal.prepare_lock, now_ns() + PREPARE_PAUSE_NS)
        if rc != 0 and not out_of_space(rc):
            fatal_set("journal: preparing files ahead failed", -rc)
    pthread_mutex_unlock(&journal.prepare_lock)
    pthread_mutex_lock(&journal.mark_lock)
    journal.prepared = False     # who trims retires the files from now on
    pthread_mutex_unlock(&journal.mark_lock)


cdef void claim(Journal* journal, int64_t end) noexcept nogil:
    """Claim the file up to `end` for a group: wait for zeroing in progress, and let the next step start above it."""
    if end <= bk_load(&journal.zeroed_to) or bk_planted(PLANT_ZEROS_OVER_GROUPS):
        return
    pthread_mutex_lock(&journal.prepare_lock)
    if end > bk_load(&journal.zeroed_to):
        bk_store(&journal.zeroed_to, (end + ZERO_CHUNK - 1) // ZERO_CHUNK * ZERO_CHUNK)
    pthread_mutex_unlock(&journal.prepare_lock)


cdef bint wants_zeros(Journal* journal) noexcept nogil:
    cdef int64_t zeroed = bk_load(&journal.zeroed_to)
    return (
        zeroed < <int64_t> journal.file_bytes_max
        and <int64_t> (bk_load_u64(&journal.position) + journal.prealloc_bytes // 2) > zeroed
    )
