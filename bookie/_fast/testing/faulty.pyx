"""File operations that fail, shorten, stall or kill as planned, and a trace of all calls, for tests.

A rule names an operation, a path suffix, the n-th matching call with which it begins to act, and the number of calls
on which it acts. The paths of descriptors are remembered at open and follow renames. Any thread may call; one lock
guards plan, paths and trace.
"""
from collections import namedtuple

from libc.errno cimport EDQUOT, EINVAL, EIO, ENOSPC, EROFS
from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, strcmp, strlen, strncpy
from posix.fcntl cimport O_WRONLY
from posix.types cimport off_t

from bookie._fast.base.file cimport FileOps, Files, iovec, real_ops
from bookie._fast.base.sync cimport (
    cond_init,
    cond_wait_until,
    now_ns,
    pthread_cond_broadcast,
    pthread_cond_t,
    pthread_cond_wait,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_t,
    pthread_mutex_unlock,
)

cdef extern from "<signal.h>" nogil:
    int SIGKILL
    int kill(int pid, int signal) noexcept

cdef extern from "<unistd.h>" nogil:
    int getpid() noexcept
    ssize_t readlink(const char*, char*, size_t) noexcept

cdef enum:
    RULES_MAX = 64
    FDS_MAX = 4096
    PATH_BYTES = 1024
    TRACE_MAX = 65536
    PARTS_MAX = 1024

cdef enum Op:
    OPEN
    PREAD
    PWRITEV
    FDATASYNC
    FALLOCATE
    RENAME
    UNLINK
    CLOSE

cdef enum Action:
    NOTHING
    FAIL_EIO
    FAIL_ENOSPC
    SHORT
    KILL
    STALL
    FAIL_EINVAL
    FAIL_EDQUOT
    FAIL_EROFS
    LOST

OPS = ("open", "pread", "pwritev", "fdatasync", "fallocate", "rename", "unlink", "close")
ACTIONS = ("", "EIO", "ENOSPC", "SHORT", "KILL", "STALL", "EINVAL", "EDQUOT", "EROFS", "LOST")

cdef struct Rule:
    Op op
    Action action
    int nth                      # matching calls to let pass, plus one
    int times                    # calls to act on after that; negative for all
    int hits
    ssize_t transferred          # bytes read or written before the action; -1: half for SHORT, none for others
    char suffix[PATH_BYTES]

cdef struct Traced:
    Op op
    off_t offset
    size_t size
    char path[48]                # the end of the path

cdef struct Verdict:
    Action action
    ssize_t transferred

cdef pthread_mutex_t lock
cdef pthread_cond_t changed      # a rule was hit, stalled calls were released
cdef Rule rules[RULES_MAX]
cdef int rule_count = 0
cdef int64_t releases = 0
cdef char paths[FDS_MAX][PATH_BYTES]
cdef bint unreported[FDS_MAX]    # open files whose lost writes no sync has reported yet
cdef Traced traced[TRACE_MAX]
cdef int traced_count = 0
cdef FileOps* real = real_ops()

pthread_mutex_init(&lock, NULL)
cond_init(&changed)


cdef bint ends_with(const char* path, const char* suffix) noexcept nogil:
    cdef size_t size = strlen(path)
    cdef size_t n = strlen(suffix)
    return n <= size and strcmp(path + size - n, suffix) == 0


cdef void record(Op op, const char* path, off_t offset, size_t size) noexcept nogil:
    global traced_count
    cdef Traced* call
    cdef size_t length = strlen(path)
    if traced_count == TRACE_MAX:
        return
    call = &traced[traced_count]
    call.op = op
    call.offset = offset
    call.size = size
    strncpy(call.path, path + (length - 47 if length > 47 else 0), sizeof(call.path) - 1)
    traced_count += 1


cdef Verdict judge(Op op, const char* path, off_t offset, size_t size) noexcept nogil:
    """Trace the call and count it in all matching rules; the first due rule decides. It stalls here; it kills later."""
    cdef Verdict verdict = Verdict(Action.NOTHING, 0)
    cdef Rule* rule
    cdef int64_t seen
    cdef int i
    pthread_mutex_lock(&lock)
    record(op, path, offset, size)
    for i in range(rule_count):
        rule = &rules[i]
        if rule.op != op or not ends_with(path, rule.suffix):
            continue
        if rule.nth > 1:
            rule.nth -= 1
            continue
        if rule.times == 0 or verdict.action != Action.NOTHING:
            continue
        rule.times -= 1 if rule.times > 0 else 0
        rule.hits += 1
        verdict.action = rule.action
        verdict.transferred = rule.transferred
        pthread_cond_broadcast(&changed)
    if verdict.action == Action.STALL:
        seen = releases
        while seen == releases:
            pthread_cond_wait(&changed, &lock)
        verdict.action = Action.NOTHING
    pthread_mutex_unlock(&lock)
    return verdict


cdef const char* path_of(int fd) noexcept nogil:
    """Return the path of a descriptor; the last slot, which no descriptor uses, is the empty path."""
    cdef char link[32]
    cdef ssize_t size
    if not 0 <= fd < FDS_MAX - 1:
        return paths[FDS_MAX - 1]
    if paths[fd][0] == 0:            # somebody else has opened it, such as LMDB
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd)
        size = readlink(link, paths[fd], PATH_BYTES - 1)
        paths[fd][max(size, <ssize_t> 0)] = 0
    return paths[fd]


cdef int outcome(Verdict verdict) noexcept nogil:
    """Return 0 to carry on, or -errno; KILL does not return."""
    if verdict.action == Action.KILL:
        kill(getpid(), SIGKILL)
    if verdict.action == Action.FAIL_EIO:
        return -EIO
    if verdict.action == Action.FAIL_ENOSPC:
        return -ENOSPC
    if verdict.action == Action.FAIL_EINVAL:
        return -EINVAL
    if verdict.action == Action.FAIL_EDQUOT:
        return -EDQUOT
    if verdict.action == Action.FAIL_EROFS:
        return -EROFS
    return 0


cdef int faulty_open(const char* path, int flags, int mode) noexcept nogil:
    cdef int rc = outcome(judge(Op.OPEN, path, 0, 0))
    if rc == 0:
        rc = real.open(path, flags, mode)
        if 0 <= rc < FDS_MAX - 1:
            pthread_mutex_lock(&lock)
            strncpy(paths[rc], path, PATH_BYTES - 1)
            unreported[rc] = False
            pthread_mutex_unlock(&lock)
    return rc


cdef ssize_t faulty_pread(int fd, void* buffer, size_t size, off_t offset) noexcept nogil:
    cdef Verdict verdict = judge(Op.PREAD, path_of(fd), offset, size)
    cdef int rc = outcome(verdict)
    if rc < 0:
        return rc
    if verdict.action == Action.SHORT:
        size = <size_t> verdict.transferred if 0 <= verdict.transferred < <ssize_t> size else (size + 1) // 2
    return real.pread(fd, buffer, size, offset)


cdef ssize_t write_some(int fd, const iovec* parts, int count, off_t offset, size_t limit) noexcept nogil:
    """Write at most `limit` bytes of `parts`, through another descriptor if a direct one refuses a partial block."""
    cdef iovec cut[PARTS_MAX]
    cdef char path[32]
    cdef ssize_t written
    cdef int n = 0
    cdef int buffered
    while n < count and n < PARTS_MAX and limit > 0:
        cut[n] = parts[n]
        if cut[n].iov_len > limit:
            cut[n].iov_len = limit
        limit -= cut[n].iov_len
        n += 1
    if n == 0:
        return 0
    written = real.pwritev(fd, cut, n, offset)
    if written == -EINVAL:
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd)     # whatever its name is now
        buffered = real.open(path, O_WRONLY, 0)
        written = real.pwritev(buffered, cut, n, offset)
        real.close(buffered)
    return written


cdef ssize_t faulty_pwritev(int fd, const iovec* parts, int count, off_t offset) noexcept nogil:
    cdef Verdict verdict
    cdef size_t total = 0
    cdef int i, rc
    for i in range(count):
        total += parts[i].iov_len
    verdict = judge(Op.PWRITEV, path_of(fd), offset, total)
    if verdict.action == Action.LOST:
        lose(fd)
    if verdict.action == Action.NOTHING or verdict.action == Action.LOST:
        return real.pwritev(fd, parts, count, offset)
    if verdict.action == Action.SHORT:
        if verdict.transferred < 0:
            verdict.transferred = (total + 1) // 2
        return write_some(fd, parts, count, offset, verdict.transferred)
    if verdict.transferred > 0:
        write_some(fd, parts, count, offset, verdict.transferred)
    rc = outcome(verdict)
    return rc


cdef void lose(int fd) noexcept nogil:
    """Lose written bytes. As in Linux, the next sync of each file that is open now reports that once."""
    cdef int other
    pthread_mutex_lock(&lock)
    for other in range(FDS_MAX - 1):
        if strcmp(paths[other], path_of(fd)) == 0:
            unreported[other] = True
    pthread_mutex_unlock(&lock)


cdef bint tell(int fd) noexcept nogil:
    cdef bint lost = False
    pthread_mutex_lock(&lock)
    if 0 <= fd < FDS_MAX - 1:
        lost = unreported[fd]
        unreported[fd] = False
    pthread_mutex_unlock(&lock)
    return lost


cdef int faulty_fdatasync(int fd) noexcept nogil:
    cdef int rc = outcome(judge(Op.FDATASYNC, path_of(fd), 0, 0))
    if rc == 0 and tell(fd):
        rc = -EIO
    return rc if rc < 0 else real.fdatasync(fd)


cdef void faulty_fdatasync_many(const int* fds, int* results, int count) noexcept nogil:
    cdef int i
    for i in range(count):
        results[i] = faulty_fdatasync(fds[i])


cdef int faulty_fallocate(int fd, int mode, off_t offset, off_t size) noexcept nogil:
    cdef int rc = outcome(judge(Op.FALLOCATE, path_of(fd), offset, size))
    return rc if rc < 0 else real.fallocate(fd, mode, offset, size)


cdef int faulty_rename(const char* old, const char* new) noexcept nogil:
    cdef int rc = outcome(judge(Op.RENAME, new, 0, 0))
    cdef int fd
    if rc == 0:
        rc = real.rename(old, new)
    if rc == 0:
        pthread_mutex_lock(&lock)
        for fd in range(FDS_MAX - 1):
            if strcmp(paths[fd], old) == 0:
                strncpy(paths[fd], new, PATH_BYTES - 1)
        pthread_mutex_unlock(&lock)
    return rc


cdef int faulty_unlink(const char* path) noexcept nogil:
    cdef int rc = outcome(judge(Op.UNLINK, path, 0, 0))
    return rc if rc < 0 else real.unlink(path)


cdef int faulty_close(int fd) noexcept nogil:
    cdef int rc = outcome(judge(Op.CLOSE, path_of(fd), 0, 0))
    if rc == 0:
        pthread_mutex_lock(&lock)
        paths[fd if 0 <= fd < FDS_MAX - 1 else FDS_MAX - 1][0] = 0
        pthread_mutex_unlock(&lock)
        rc = real.close(fd)
    return rc


cdef FileOps faulty
faulty.open = faulty_open
faulty.pread = faulty_pread
faulty.pwritev = faulty_pwritev
faulty.fdatasync = faulty_fdatasync
faulty.fdatasync_many = faulty_fdatasync_many
faulty.fallocate = faulty_fallocate
faulty.rename = faulty_rename
faulty.unlink = faulty_unlink
faulty.close = faulty_close


cdef class FaultyFiles(Files):
    """File operations that follow `plan()`; pass it to a constructor in place of Files."""

    def __cinit__(self):
        self.ops = &faulty


Call = namedtuple("Call", "op path offset size")


def plan(op, action, *, int nth=1, int times=1, suffix="", ssize_t transferred=-1):
    """Add a rule and return its number: from the `nth` matching call on, `times` calls (negative: all) meet `action`.

    Args:
        op: open, pread, pwritev, fdatasync, fallocate, rename, unlink or close.
        action: EIO, ENOSPC, EDQUOT, EROFS, EINVAL, SHORT, KILL (SIGKILL to this process), STALL (until release()), or
            LOST: a pwritev succeeds, but its bytes do not reach the disk, and the next fdatasync of each descriptor
            that is open on the file then fails once with EIO.
        nth: the matching call with which the rule begins to act.
        times: the number of calls on which it acts.
        suffix: end of the path; for a rename, of its new name.
        transferred: bytes that a pread or pwritev moves before the action; -1 means half for SHORT, else none.

    Raises:
        ValueError: for an unknown op or action, or one that does not fit the other; or if there are too many rules.
    """
    global rule_count
    encoded = suffix.encode()
    if op not in OPS or action not in ACTIONS[1:]:
        raise ValueError(f"plan: op {op!r} must be one of {OPS}, action {action!r} one of {ACTIONS[1:]}")
    if action == "SHORT" and op not in ("pread", "pwritev"):
        raise ValueError(f"plan: action SHORT needs op pread or pwritev, not {op!r}")
    if action == "LOST" and op != "pwritev":
        raise ValueError(f"plan: action LOST needs op pwritev, not {op!r}")
    if rule_count == RULES_MAX or len(encoded) >= PATH_BYTES:
        raise ValueError(f"plan: at most {RULES_MAX} rules with suffixes below {PATH_BYTES} bytes")
    cdef const char* text = encoded
    cdef Rule rule
    rule.op = <Op> <int> OPS.index(op)
    rule.action = <Action> <int> ACTIONS.index(action)
    rule.nth = nth
    rule.times = times
    rule.hits = 0
    rule.transferred = transferred
    memcpy(rule.suffix, text, len(encoded) + 1)
    with nogil:
        pthread_mutex_lock(&lock)
        rules[rule_count] = rule
        rule_count += 1
        pthread_mutex_unlock(&lock)
    return rule_count - 1


def clear():
    """Forget all rules and the trace, and release stalled calls."""
    global rule_count, traced_count
    with nogil:
        pthread_mutex_lock(&lock)
        rule_count = 0
        traced_count = 0
        pthread_mutex_unlock(&lock)
    release()


def hits(int rule):
    """Return how often a rule has acted."""
    cdef int so_far
    if not 0 <= rule < rule_count:
        raise ValueError(f"hits: there is no rule {rule}")
    with nogil:
        pthread_mutex_lock(&lock)
        so_far = rules[rule].hits
        pthread_mutex_unlock(&lock)
    return so_far


def wait_hit(int rule, double timeout_s):
    """Wait until a rule has acted; return False after `timeout_s` seconds."""
    if not 0 <= rule < rule_count:
        raise ValueError(f"wait_hit: there is no rule {rule}")
    cdef int64_t deadline = now_ns() + <int64_t> (timeout_s * 1e9)
    cdef bint hit
    with nogil:
        pthread_mutex_lock(&lock)
        while rules[rule].hits == 0:
            if cond_wait_until(&changed, &lock, deadline):
                break
        hit = rules[rule].hits > 0
        pthread_mutex_unlock(&lock)
    return hit


def release():
    """Let all calls that stall now continue."""
    global releases
    with nogil:
        pthread_mutex_lock(&lock)
        releases += 1
        pthread_cond_broadcast(&changed)
        pthread_mutex_unlock(&lock)


def trace():
    """Return all calls since clear(), in order (the first 65,536): op, end of the path, offset and size."""
    return [Call(OPS[<int> c.op], c.path.decode(errors="replace"), c.offset, c.size) for c in traced[:traced_count]]
