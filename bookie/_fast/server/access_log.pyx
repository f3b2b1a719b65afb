"""Rings of sampled accesses, and the thread that writes them to the log."""
import os

from libc.errno cimport ENOENT
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memset, strlen
from posix.fcntl cimport O_CREAT, O_TRUNC, O_WRONLY
from posix.time cimport CLOCK_REALTIME, clock_gettime, timespec

from bookie._fast.base.file cimport PRIVATE_MODE, write_full
from bookie._fast.base.sync cimport (
    bk_add_relaxed,
    bk_load,
    bk_store,
    cond_init,
    cond_wait_until,
    now_ns,
    pthread_cond_broadcast,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)
from bookie._fast.server.addresses cimport address_bytes
from bookie._fast.wire.request cimport ADD_ENTRY, BATCH_READ_ENTRY, READ_LAC

cdef extern from "<arpa/inet.h>" nogil:
    int AF_INET
    int AF_INET6
    const char* inet_ntop(int family, const void* address, char* text, unsigned int size) noexcept

cdef extern from "<netinet/in.h>" nogil:
    struct sockaddr_in6:
        unsigned short sin6_port
    unsigned short ntohs(unsigned short) noexcept

cdef extern from "<sys/socket.h>" nogil:
    ctypedef unsigned int socklen_t
    struct sockaddr:
        pass
    struct sockaddr_storage:
        pass
    int getpeername(int fd, sockaddr* address, socklen_t* size) noexcept

cdef extern from "<fcntl.h>" nogil:
    int O_CLOEXEC

cdef enum:
    TEXT_BYTES = 1 << 18
    LINE_MOST = 320
    WAIT_NS = 50000000           # the writer's interval, in which a ring is filled only by 160,000 samples a second
    FILES_MOST = 64
    IP_TEXT = 46

cdef const char* HEADER = b"ts_us,op,ledger_id,entry_id,size,source,log_id,position,client,latency_us\n"
cdef const char* MAPPED = b"\0\0\0\0\0\0\0\0\0\0\xff\xff"

BYTES_A_LOOP = ACCESS_ROWS * sizeof(AccessRow)


cdef int64_t wall_us() noexcept nogil:
    """Return the wall clock in microseconds since 1970."""
    cdef timespec t
    clock_gettime(CLOCK_REALTIME, &t)
    return <int64_t> t.tv_sec * 1000000 + t.tv_nsec // 1000


cdef AccessRow* access_row(AccessRing* ring) noexcept nogil:
    if ring.noted - bk_load(&ring.written) == ACCESS_ROWS:
        bk_add_relaxed(&ring.dropped, 1)
        return NULL
    return &ring.rows[ring.noted & (ACCESS_ROWS - 1)]


cdef void access_noted(AccessRing* ring, AccessRow* row, int fd, int64_t latency_ns) noexcept nogil:
    cdef sockaddr_storage peer
    cdef socklen_t size = sizeof(peer)
    row.at_us = wall_us()
    row.latency_us = <uint32_t> min(latency_ns // 1000, <int64_t> 0xFFFFFFFF)
    row.port = 0
    memset(&peer, 0, sizeof(peer))
    if getpeername(fd, <sockaddr*> &peer, &size) == 0:
        row.port = ntohs((<sockaddr_in6*> &peer).sin6_port)      # IPv4's port is at the same place
    address_bytes(&peer, row.ip)
    bk_store(&ring.noted, ring.noted + 1)


cdef const char* op_name(uint8_t op) noexcept nogil:
    if op == ADD_ENTRY:
        return b"add"
    if op == BATCH_READ_ENTRY:
        return b"batch_read"
    return b"read_lac" if op == READ_LAC else b"read"


cdef const char* source_name(uint8_t source) noexcept nogil:
    if source == FROM_WRITE_CACHE:
        return b"write_cache"
    if source == FROM_READ_CACHE:
        return b"read_cache"
    return b"disk" if source == FROM_DISK else b""


cdef int line_of(const AccessRow* row, char* out) noexcept nogil:
    """Write one line of at most LINE_MOST bytes; return its size."""
    cdef char ip[IP_TEXT]
    cdef char place[48]
    cdef bint mapped = memcmp(row.ip, MAPPED, 12) == 0
    cdef const uint8_t* address = <const uint8_t*> row.ip + (12 if mapped else 0)
    if inet_ntop(AF_INET if mapped else AF_INET6, address, ip, IP_TEXT) == NULL:
        ip[0] = 0
    place[0] = 44                # ","
    place[1] = 0
    if row.log_id != NO_LOG_ID:
        snprintf(place, sizeof(place), "%u,%llu", row.log_id, <unsigned long long> row.position)
    return snprintf(out, LINE_MOST, "%lld,%s,%lld,%lld,%llu,%s,%s,%s%s%s:%u,%u\n", <long long> row.at_us,
                    op_name(row.op), <long long> row.ledger, <long long> row.entry, <unsigned long long> row.size,
                    source_name(row.source), place, b"" if mapped else b"[", ip, b"" if mapped else b"]",
                    <unsigned int> row.port, row.latency_us)


cdef class AccessLogBuffer:
    """The rings and their writer; `run` is the body of its thread. The newest file has the path itself, older ones
    have .1, .2 and so on appended; each start begins a new file.
    """

    def __cinit__(self):
        pthread_mutex_init(&self.lock, NULL)
        cond_init(&self.wake)
        self.fd = -1

    def __init__(self, path, *, sample_rate: float, file_bytes_max: int, files_max: int, Files files=None):
        if not 0 < sample_rate <= 1 or not 0 < files_max <= FILES_MOST or file_bytes_max < 1:
            raise ValueError(f"sample_rate is {sample_rate}, files_max {files_max} and file_bytes_max {file_bytes_max};"
                             f" they must be in (0, 1], 1 to {FILES_MOST} and at least 1")
        self.files = files if files is not None else Files()
        self.share = <uint64_t> (<double> sample_rate * 4294967296.0)
        self.kept = files_max
        self.file_bytes_max = file_bytes_max
        first = os.fsencode(path)
        self.names = [first] + [first + b".%d" % at for at in range(1, files_max)]
        for at, name in enumerate(self.names):
            self.paths[at] = name
        self.text = <uint8_t*> malloc(TEXT_BYTES)
        if self.text == NULL:
            raise MemoryError

    cdef AccessRing* ring(self) except NULL:
        """Create a ring, which lives as long as this object."""
        cdef AccessRing* ring = &self.rings[self.ring_count]
        if self.ring_count == ACCESS_RINGS_MOST:
            raise ValueError(f"there can be at most {ACCESS_RINGS_MOST} I/O loops with an access log")
        ring.rows = <AccessRow*> calloc(ACCESS_ROWS, sizeof(AccessRow))
        if ring.rows == NULL:
            raise MemoryError
        self.ring_count += 1
        ring.share = self.share
        ring.random = <uint64_t> 0x9E3779B97F4A7C15 * <uint64_t> self.ring_count ^ <uint64_t> now_ns()
        return ring

    cdef int rotate(self) noexcept nogil:
        """Begin a new file, and drop the oldest one. Return 0 or -errno."""
        cdef int at
        cdef int rc
        if self.fd >= 0:
            self.files.ops.close(self.fd)
            self.fd = -1
        for at in range(self.kept - 1, 0, -1):
            rc = self.files.ops.rename(self.paths[at - 1], self.paths[at])
            if rc < 0 and rc != -ENOENT:
                return rc
        self.fd = self.files.ops.open(self.paths[0], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, PRIVATE_MODE)
        self.size = strlen(HEADER)
        return self.fd if self.fd < 0 else write_full(self.files.ops, self.fd, HEADER, self.size, 0)

    cdef int flush(self) noexcept nogil:
        """Write the collected text. Return 0 or -errno: then it is lost, and the next call begins a new file."""
        cdef int rc = 0
        cdef uint64_t at
        cdef int64_t lines = 0
        if self.used == 0:
            return 0
        for at in range(self.used):
            lines += self.text[at] == 10
        if self.fd < 0 or self.size >= self.file_bytes_max:
            rc = self.rotate()
        if rc >= 0:
            rc = write_full(self.files.ops, self.fd, self.text, self.used, self.size)
        self.size += self.used
        self.used = 0
        bk_add_relaxed(&self.lost if rc < 0 else &self.lines, lines)
        if rc < 0 and self.fd >= 0:
            self.files.ops.close(self.fd)
            self.fd = -1
        return rc

    cdef int drain(self) noexcept nogil:
        """Write everything noted so far. Return 0, or the last -errno."""
        cdef AccessRing* ring
        cdef int64_t end
        cdef int i
        cdef int rc
        cdef int failed = 0
        for i in range(self.ring_count):
            ring = &self.rings[i]
            end = bk_load(&ring.noted)
            while ring.written != end:
                if (self.used > TEXT_BYTES - LINE_MOST
                        or (self.size if self.fd >= 0 else 0) + self.used >= self.file_bytes_max):
                    rc = self.flush()
                    failed = rc if rc < 0 else failed
                self.used += line_of(&ring.rows[ring.written & (ACCESS_ROWS - 1)], <char*> self.text + self.used)
                bk_store(&ring.written, ring.written + 1)
        rc = self.flush()
        return rc if rc < 0 else failed

    def run(self) -> int:
        """Write until `stop` (returns 0), or until a write fails and loses lines (returns its errno): call again."""
        cdef int rc = 0
        cdef bint stopping = False
        with nogil:
            while not stopping and rc >= 0:
                pthread_mutex_lock(&self.lock)
                if not self.stopping:
                    cond_wait_until(&self.wake, &self.lock, now_ns() + WAIT_NS)
                stopping = self.stopping
                pthread_mutex_unlock(&self.lock)
                rc = self.drain()
        return -rc if rc < 0 else 0

    def stop(self) -> None:
        """Let `run` write the rest and end. Any thread."""
        with nogil:
            pthread_mutex_lock(&self.lock)
            self.stopping = True
            pthread_cond_broadcast(&self.wake)
            pthread_mutex_unlock(&self.lock)

    def stats(self) -> dict[str, int]:
        """Return the number of lines written, of samples whose ring was full, and of lines lost in failed writes."""
        dropped = 0
        for i in range(self.ring_count):
            dropped += bk_load(&self.rings[i].dropped)
        return {"access_log_lines": bk_load(&self.lines), "access_log_dropped": dropped,
                "access_log_lost": bk_load(&self.lost)}

    def close(self) -> None:
        """Close the file, after the thread has ended. A second call does nothing."""
        if self.fd >= 0:
            self.files.ops.close(self.fd)
            self.fd = -1

    def __dealloc__(self):
        for i in range(self.ring_count):
            free(self.rings[i].rows)
        free(self.text)
