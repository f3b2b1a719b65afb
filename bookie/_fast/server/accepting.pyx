"""Accepts connections within their limits and hands them to the I/O loops. Runs on the loop's thread."""
from libc.errno cimport EMFILE, ENFILE, ENOBUFS, ENOMEM, errno
from libc.stdint cimport INT32_MAX, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy
from posix.resource cimport RLIMIT_NOFILE, getrlimit, rlimit

from bookie._fast.base.epoll cimport EPOLLIN, EPOLL_CTL_ADD, EPOLL_CTL_DEL, epoll_ctl, epoll_event
from bookie._fast.base.sync cimport bk_add, bk_load, bk_store, now_ns, pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.base.waker cimport waker_wake
from bookie._fast.server.addresses cimport ADDRESS_BYTES, Address, address_bytes, address_enter
from bookie._fast.server.connection cimport Conn, conn_new
from bookie._fast.server.limits cimport NetLimits
from bookie._fast.server.loop_state cimport HANDED_MOST, Handed
from bookie._fast.server.membership cimport close_conn, leave, link
from bookie._fast.server.rejections cimport TOO_MANY_CONNECTIONS, TOO_MANY_OF_ADDRESS, reject

cdef extern from "<sys/socket.h>" nogil:
    struct sockaddr_storage:
        pass
    struct c_linger "linger":
        int l_onoff
        int l_linger
    struct sockaddr:
        pass
    int accept4(int, sockaddr*, unsigned int*, int) noexcept
    int setsockopt(int, int, int, const void*, unsigned int) noexcept
    int SOCK_NONBLOCK
    int SOCK_CLOEXEC
    int SOL_SOCKET
    int SO_KEEPALIVE
    int SO_LINGER

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
    ACCEPT_BATCH = 16            # in a round; in a flood, further connections wait in the backlog
    PAUSE_NS = 100000000         # after a connection that could not be accepted


cdef void adopt(IoLoop* loop, int fd, Address* address) noexcept nogil:
    cdef Conn* conn = conn_new(fd, loop, loop.limits, loop.usage)
    cdef c_linger linger
    cdef int one = 1
    if conn == NULL:
        c_close(fd)
        leave(loop, address)
        return
    conn.address = address
    conn.since_ns = conn.active_ns = now_ns()
    if loop.limits.linger_s == 0:
        # With a time, `close` would stop the whole loop until the peer has read everything, or until the time is over.
        # The kernel sends what is left after a close anyway.
        linger.l_onoff = 1
        linger.l_linger = 0
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger))
    if loop.limits.tcp_nodelay:
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one))
    if loop.limits.keepalive:
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one))
    if not link(loop, conn):
        close_conn(loop, conn)


cdef void hand_over(IoLoop* loop, int fd, Address* address) noexcept nogil:
    """Give the connection to the next loop in turn."""
    cdef IoLoop* peer = loop.peers[loop.peer_next]
    loop.peer_next = (loop.peer_next + 1) % loop.peer_count
    if peer == loop:
        adopt(loop, fd, address)
        return
    pthread_mutex_lock(&peer.handed_lock)
    if peer.handed_count < HANDED_MOST:
        peer.handed[peer.handed_count].fd = fd
        peer.handed[peer.handed_count].address = address
        bk_store(&peer.handed_count, peer.handed_count + 1)      # the peer reads this without the lock
        fd = -1
    pthread_mutex_unlock(&peer.handed_lock)
    if fd < 0:
        waker_wake(&peer.waker)
    else:
        adopt(loop, fd, address)


cdef bint spares_files(const NetLimits* limits, int fd) noexcept nogil:
    """Return whether `fd` leaves enough descriptors to files, given that the kernel hands out the lowest first."""
    cdef rlimit most
    cdef int64_t reserve = limits.descriptors_left
    if getrlimit(RLIMIT_NOFILE, &most) != 0 or most.rlim_cur > <uint64_t> INT32_MAX:
        return True
    if reserve > <int64_t> most.rlim_cur // 2:
        reserve = <int64_t> most.rlim_cur // 2
    return fd < <int64_t> most.rlim_cur - reserve


cdef Address* admit(IoLoop* loop, int fd, const uint8_t* ip) noexcept nogil:
    """Count a new connection; return NULL if it is over a limit."""
    cdef Address* address
    if bk_add(&loop.usage.connections, 1) > loop.limits.connections_max or not spares_files(loop.limits, fd):
        bk_add(&loop.usage.connections, -1)
        loop.stats.refused += 1
        reject(&loop.rejections, ip, TOO_MANY_CONNECTIONS)
        return NULL
    address = address_enter(&loop.usage.addresses, ip)
    if address == NULL:
        bk_add(&loop.usage.connections, -1)
        loop.stats.refused_address += 1
        reject(&loop.rejections, ip, TOO_MANY_OF_ADDRESS)
    return address


cdef void pause(IoLoop* loop) noexcept nogil:
    """Leave the backlog alone for a while: who waits in it would wake the loop again at once, in vain."""
    if epoll_ctl(loop.epoll, EPOLL_CTL_DEL, loop.listener, NULL) == 0:
        loop.accept_due = loop.now + PAUSE_NS


cdef void end_pause(IoLoop* loop) noexcept nogil:
    cdef epoll_event event
    if loop.accept_due == 0 or loop.now < loop.accept_due:
        return
    loop.accept_due = 0
    event.events = EPOLLIN
    event.data.ptr = loop
    if bk_load(&loop.stopping) == 0 and epoll_ctl(loop.epoll, EPOLL_CTL_ADD, loop.listener, &event) != 0:
        loop.accept_due = loop.now + PAUSE_NS


cdef bint refuse_one(IoLoop* loop) noexcept nogil:
    """Refuse one connection with the descriptor kept for this. Return False if it is lost to another thread."""
    cdef int fd
    if loop.spare_fd < 0:
        return False
    c_close(loop.spare_fd)
    fd = accept4(loop.listener, NULL, NULL, SOCK_CLOEXEC)
    if fd >= 0:
        c_close(fd)
        loop.stats.refused += 1
    loop.spare_fd = c_open("/dev/null", O_RDONLY | O_CLOEXEC)
    return fd >= 0 or loop.spare_fd >= 0


cdef void accept_some(IoLoop* loop) noexcept nogil:
    cdef sockaddr_storage peer
    cdef unsigned int size
    cdef uint8_t ip[ADDRESS_BYTES]
    cdef Address* address
    cdef int _, fd
    if loop.spare_fd < 0:
        loop.spare_fd = c_open("/dev/null", O_RDONLY | O_CLOEXEC)
    for _ in range(ACCEPT_BATCH):
        size = sizeof(peer)
        fd = accept4(loop.listener, <sockaddr*> &peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC)
        if fd < 0:
            if errno == ENOBUFS or errno == ENOMEM or ((errno == EMFILE or errno == ENFILE) and not refuse_one(loop)):
                pause(loop)
            return
        address_bytes(&peer, ip)
        address = admit(loop, fd, ip)
        if address == NULL:
            c_close(fd)
            continue
        loop.stats.accepted += 1
        hand_over(loop, fd, address)


cdef void take_handed(IoLoop* loop) noexcept nogil:
    cdef Handed fds[HANDED_MOST]
    cdef int64_t count, i
    if bk_load(&loop.handed_count) == 0:
        return
    pthread_mutex_lock(&loop.handed_lock)
    count = loop.handed_count
    memcpy(fds, loop.handed, count * sizeof(Handed))
    bk_store(&loop.handed_count, 0)
    pthread_mutex_unlock(&loop.handed_lock)
    for i in range(count):
        adopt(loop, fds[i].fd, fds[i].address)
