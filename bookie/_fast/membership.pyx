"""Which connections a loop owns: accepted, handed over, armed in epoll, closed. Runs on the loop's thread."""
from libc.errno cimport EMFILE, ENFILE, errno
from libc.stdint cimport INT32_MAX, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy
from posix.resource cimport RLIMIT_NOFILE, getrlimit, rlimit

from bookie._fast.connection cimport NetLimits, conn_drop, conn_free, conn_new
from bookie._fast.epoll cimport (
    EPOLL_CTL_ADD,
    EPOLL_CTL_MOD,
    EPOLLIN,
    EPOLLOUT,
    epoll_ctl,
    epoll_event,
)
from bookie._fast.gate cimport gate_closed
from bookie._fast.loop_state cimport HANDED_MOST
from bookie._fast.sync cimport bk_add, bk_load, pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.waker cimport waker_wake

cdef extern from "<sys/socket.h>" nogil:
    int accept4(int, void*, void*, int) noexcept
    int setsockopt(int, int, int, const void*, unsigned int) noexcept
    int SOCK_NONBLOCK
    int SOCK_CLOEXEC
    int SOL_SOCKET
    int SO_KEEPALIVE

cdef extern from "<netinet/in.h>" nogil:
    int IPPROTO_TCP

cdef extern from "<netinet/tcp.h>" nogil:
    int TCP_NODELAY

cdef extern from "<unistd.h>" nogil:
    int c_close "close"(int) noexcept

cdef extern from "<fcntl.h>" nogil:
    int c_open "open"(const char*, int) noexcept
    int O_RDONLY
    int O_CLOEXEC

cdef enum:
    ACCEPT_BATCH = 64


cdef void release(Conn* conn) noexcept nogil:
    """One owner less; the last one frees."""
    conn.refs -= 1
    if conn.refs == 0:
        conn_free(conn)


cdef void close_conn(IoLoop* loop, Conn* conn) noexcept nogil:
    """Close the socket now; the memory goes when the last answer that refers to it has come."""
    if conn.fd < 0:
        return
    c_close(conn.fd)
    conn.fd = -1
    if conn.stalled_until:
        conn.stalled_until = 0
        loop.stalled -= 1
    if conn.prev != NULL:
        conn.prev.next = conn.next
    else:
        loop.conns = conn.next
    if conn.next != NULL:
        conn.next.prev = conn.prev
    bk_add(&loop.limits.connections, -1)
    conn_drop(conn)
    gate_closed(loop, conn)
    if not conn.dirty:
        release(conn)            # else when it is taken off the dirty list


cdef void mark_dirty(IoLoop* loop, Conn* conn) noexcept nogil:
    if not conn.dirty:
        conn.dirty = True
        conn.next_dirty = loop.dirty
        loop.dirty = conn


cdef void arm(IoLoop* loop, Conn* conn) noexcept nogil:
    """Ask epoll for what the connection can use now."""
    cdef epoll_event event
    cdef uint32_t wanted = 0
    if not conn.choked and not conn.gated and conn.stalled_until == 0 and bk_load(&loop.stopping) == 0:
        wanted |= EPOLLIN
    if conn.pending:
        wanted |= EPOLLOUT
    if wanted == conn.armed:
        return
    conn.armed = wanted
    event.events = wanted
    event.data.ptr = conn
    epoll_ctl(loop.epoll, EPOLL_CTL_MOD, conn.fd, &event)


cdef void adopt(IoLoop* loop, int fd) noexcept nogil:
    cdef Conn* conn = conn_new(fd, loop, loop.limits)
    cdef epoll_event event
    cdef int one = 1
    if conn == NULL:
        c_close(fd)
        bk_add(&loop.limits.connections, -1)
        return
    if loop.limits.nodelay:
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one))
    if loop.limits.keepalive:
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one))
    conn.next = loop.conns
    if loop.conns != NULL:
        loop.conns.prev = conn
    loop.conns = conn
    conn.armed = EPOLLIN
    event.events = EPOLLIN
    event.data.ptr = conn
    if epoll_ctl(loop.epoll, EPOLL_CTL_ADD, fd, &event) != 0:
        close_conn(loop, conn)


cdef void hand_over(IoLoop* loop, int fd) noexcept nogil:
    """Give the connection to the next loop in turn."""
    cdef IoLoop* peer = loop.peers[loop.peer_next]
    loop.peer_next = (loop.peer_next + 1) % loop.peer_count
    if peer == loop:
        adopt(loop, fd)
        return
    pthread_mutex_lock(&peer.handed_lock)
    if peer.handed_count < HANDED_MOST:
        peer.handed[peer.handed_count] = fd
        peer.handed_count += 1
        fd = -1
    pthread_mutex_unlock(&peer.handed_lock)
    if fd < 0:
        waker_wake(&peer.waker)
    else:
        adopt(loop, fd)


cdef bint spares_files(const NetLimits* limits, int fd) noexcept nogil:
    """Descriptors are given out lowest first: a low one leaves those above it to journals and entry logs."""
    cdef rlimit most
    cdef int64_t reserve = limits.fd_reserve
    if getrlimit(RLIMIT_NOFILE, &most) != 0 or most.rlim_cur > <uint64_t> INT32_MAX:
        return True
    if reserve > <int64_t> most.rlim_cur // 2:
        reserve = <int64_t> most.rlim_cur // 2
    return fd < <int64_t> most.rlim_cur - reserve


cdef void accept_some(IoLoop* loop) noexcept nogil:
    cdef int _, fd
    if loop.spare_fd < 0:
        loop.spare_fd = c_open("/dev/null", O_RDONLY | O_CLOEXEC)
    for _ in range(ACCEPT_BATCH):
        fd = accept4(loop.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)
        if fd < 0:
            if (errno == EMFILE or errno == ENFILE) and loop.spare_fd >= 0:
                # refuse one connection with the descriptor kept for this, instead of spinning on it
                c_close(loop.spare_fd)
                fd = accept4(loop.listener, NULL, NULL, SOCK_CLOEXEC)
                if fd >= 0:
                    c_close(fd)
                    loop.stats.refused += 1
                loop.spare_fd = c_open("/dev/null", O_RDONLY | O_CLOEXEC)
            return
        if bk_add(&loop.limits.connections, 1) > loop.limits.connections_max or not spares_files(loop.limits, fd):
            bk_add(&loop.limits.connections, -1)
            loop.stats.refused += 1
            c_close(fd)
            continue
        loop.stats.accepted += 1
        hand_over(loop, fd)


cdef void take_handed(IoLoop* loop) noexcept nogil:
    cdef int fds[HANDED_MOST]
    cdef int count, i
    if loop.handed_count == 0:
        return
    pthread_mutex_lock(&loop.handed_lock)
    count = loop.handed_count
    memcpy(fds, loop.handed, count * sizeof(int))
    loop.handed_count = 0
    pthread_mutex_unlock(&loop.handed_lock)
    for i in range(count):
        adopt(loop, fds[i])
