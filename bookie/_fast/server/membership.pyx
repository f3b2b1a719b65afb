"""Which connections a loop owns: accepted, handed over, armed in epoll, closed. Runs on the loop's thread."""
from libc.errno cimport EMFILE, ENFILE, errno
from libc.stdint cimport INT32_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy
from posix.resource cimport RLIMIT_NOFILE, getrlimit, rlimit

from bookie._fast.base.epoll cimport (
    EPOLL_CTL_ADD,
    EPOLL_CTL_DEL,
    EPOLL_CTL_MOD,
    EPOLLIN,
    EPOLLOUT,
    epoll_ctl,
    epoll_event,
)
from bookie._fast.base.sync cimport bk_add, bk_load, bk_store, now_ns, pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.base.tls cimport TLS_HANDSHAKE, tls_close
from bookie._fast.base.waker cimport waker_wake
from bookie._fast.server.addresses cimport ADDRESS_BYTES, Address, address_bytes, address_enter, address_leave
from bookie._fast.server.admission cimport urgent_leaves
from bookie._fast.server.rejections cimport (
    BAD_FRAME,
    BAD_LENGTH,
    REVOKED,
    TOO_LONG_IDLE,
    TOO_LONG_UNAUTHENTICATED,
    TOO_MANY_CONNECTIONS,
    TOO_MANY_OF_ADDRESS,
    TOO_MUCH_INPUT,
    TOO_MUCH_OUTPUT,
    TOO_SLOW,
    Reason,
    reject,
)
from bookie._fast.server.connection cimport conn_drop, conn_flush, conn_free, conn_new
from bookie._fast.server.gate cimport gate_closed
from bookie._fast.server.limits cimport AUTH_WAITING, NetLimits, auth_at_first
from bookie._fast.server.long_polls cimport polls_cancel
from bookie._fast.server.loop_state cimport HANDED_MOST, SEALED_BYTES, Handed
from bookie._fast.server.turn cimport LINE_BUSY, LINE_NONE

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
    ssize_t recv(int, void*, size_t, int) noexcept
    int MSG_DONTWAIT
    int MSG_PEEK
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
    ACCEPT_BATCH = 16            # in a round: a flood of connections waits in the backlog
    LATE_CHECK_NS = 1000000000


cdef void release(Conn* conn) noexcept nogil:
    """One owner less; the last one frees."""
    conn.refs -= 1
    if conn.refs == 0:
        conn_free(conn)


cdef void leave(IoLoop* loop, Address* address) noexcept nogil:
    """One connection less, in all and of its address."""
    bk_add(&loop.usage.connections, -1)
    address_leave(&loop.usage.addresses, address)


cdef bint link(IoLoop* loop, Conn* conn) noexcept nogil:
    cdef epoll_event event
    conn.loop = loop
    conn.prev = NULL
    conn.next = loop.conns
    if loop.conns != NULL:
        loop.conns.prev = conn
    loop.conns = conn
    conn.armed = EPOLLIN
    conn.settled = loop.unpin_seen
    event.events = EPOLLIN
    event.data.ptr = conn
    return epoll_ctl(loop.epoll, EPOLL_CTL_ADD, conn.fd, &event) == 0


cdef void unlink(IoLoop* loop, Conn* conn) noexcept nogil:
    cdef epoll_event event
    if conn.stalled_until:
        conn.stalled_until = 0
        loop.stalled -= 1
    if conn.prev != NULL:
        conn.prev.next = conn.next
    else:
        loop.conns = conn.next
    if conn.next != NULL:
        conn.next.prev = conn.prev
    epoll_ctl(loop.epoll, EPOLL_CTL_DEL, conn.fd, &event)


cdef void handshake_over(IoLoop* loop, Conn* conn) noexcept nogil:
    loop.handshaking -= 1
    bk_add(&conn.address.handshakes, -1)


cdef void end_tls(IoLoop* loop, Conn* conn) noexcept nogil:
    if conn.tls.state == TLS_HANDSHAKE:
        handshake_over(loop, conn)
    tls_close(conn.tls, conn.fd)
    conn.tls = NULL


cdef void close_conn(IoLoop* loop, Conn* conn) noexcept nogil:
    """Close the socket now; the memory goes when the last answer that refers to it has come."""
    if conn.fd < 0:
        return
    if conn.tls != NULL:
        end_tls(loop, conn)
    unlink(loop, conn)
    c_close(conn.fd)
    conn.fd = -1
    urgent_leaves(conn)
    leave(loop, conn.address)
    conn.address = NULL
    conn.refs -= polls_cancel(&loop.polls, &conn.polls)
    conn_drop(conn)
    gate_closed(loop, conn)
    if not conn.dirty and conn.turn.line == LINE_NONE:
        release(conn)            # else when it is taken off those lists


cdef void close_bad(IoLoop* loop, Conn* conn, Reason reason) noexcept nogil:
    if conn.fd < 0:
        return
    if reason == BAD_LENGTH or reason == BAD_FRAME:
        loop.stats.broken_frames += 1
    elif reason == TOO_MUCH_INPUT or reason == TOO_MUCH_OUTPUT or reason == TOO_SLOW:
        loop.stats.closed_by_limit += 1
    reject(&loop.rejections, conn.address.ip, reason)
    close_conn(loop, conn)


cdef void close_failed(IoLoop* loop, Conn* conn, Reason otherwise) noexcept nogil:
    if conn.gone:
        close_conn(loop, conn)
    elif conn.unaffordable:
        close_bad(loop, conn, TOO_MUCH_OUTPUT)
    else:
        close_bad(loop, conn, <Reason> conn.why if conn.why else otherwise)


cdef Status flush(IoLoop* loop, Conn* conn) noexcept nogil:
    cdef uint64_t before = conn.pending
    cdef Status status = conn_flush(conn)
    if conn.pending < before:
        loop.stats.bytes_out += before - conn.pending
        conn.active_ns = loop.now
    if conn.pending == 0 and conn.sealed == 0:
        conn.stuck_ns = 0
    elif conn.pending < before or conn.stuck_ns == 0:
        conn.stuck_ns = loop.now
    return status


cdef void mark_dirty(IoLoop* loop, Conn* conn) noexcept nogil:
    if not conn.dirty:
        conn.dirty = True
        conn.next_dirty = loop.dirty
        loop.dirty = conn


cdef void rearm(IoLoop* loop, Conn* conn, uint32_t wanted) noexcept nogil:
    cdef epoll_event event
    if wanted == conn.armed:
        return
    conn.armed = wanted
    event.events = wanted
    event.data.ptr = conn
    epoll_ctl(loop.epoll, EPOLL_CTL_MOD, conn.fd, &event)


cdef void arm(IoLoop* loop, Conn* conn) noexcept nogil:
    """Ask epoll for what the connection can use now. While it is busy that stays as it is, mostly: it has input."""
    cdef uint32_t wanted = 0
    if is_served(conn) and conn.sealed <= SEALED_BYTES and bk_load(&loop.stopping) == 0:
        wanted |= conn.armed & EPOLLIN if conn.turn.line == LINE_BUSY else <uint32_t> EPOLLIN
    if conn.pending or conn.sealed:
        wanted |= EPOLLOUT
    rearm(loop, conn, wanted)


cdef void disarm_input(IoLoop* loop, Conn* conn) noexcept nogil:
    rearm(loop, conn, conn.armed & ~<uint32_t> EPOLLIN)


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
    if loop.limits.linger_s >= 0:
        linger.l_onoff = 1
        linger.l_linger = loop.limits.linger_s
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
        bk_store(&peer.handed_count, peer.handed_count + 1)      # the peer looks without the lock
        fd = -1
    pthread_mutex_unlock(&peer.handed_lock)
    if fd < 0:
        waker_wake(&peer.waker)
    else:
        adopt(loop, fd, address)


cdef bint spares_files(const NetLimits* limits, int fd) noexcept nogil:
    """Descriptors are given out lowest first: a low one leaves those above it to journals and entry logs."""
    cdef rlimit most
    cdef int64_t reserve = limits.descriptors_left
    if getrlimit(RLIMIT_NOFILE, &most) != 0 or most.rlim_cur > <uint64_t> INT32_MAX:
        return True
    if reserve > <int64_t> most.rlim_cur // 2:
        reserve = <int64_t> most.rlim_cur // 2
    return fd < <int64_t> most.rlim_cur - reserve


cdef Address* admit(IoLoop* loop, int fd, const uint8_t* ip) noexcept nogil:
    """Count a new connection; NULL: it is one too many."""
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
            if (errno == EMFILE or errno == ENFILE) and loop.spare_fd >= 0:
                # refuse one connection with the descriptor kept for this, instead of spinning on it
                c_close(loop.spare_fd)
                fd = accept4(loop.listener, NULL, NULL, SOCK_CLOEXEC)
                if fd >= 0:
                    c_close(fd)
                    loop.stats.refused += 1
                loop.spare_fd = c_open("/dev/null", O_RDONLY | O_CLOEXEC)
            return
        address_bytes(&peer, ip)
        address = admit(loop, fd, ip)
        if address == NULL:
            c_close(fd)
            continue
        loop.stats.accepted += 1
        hand_over(loop, fd, address)


cdef bint idle(const Conn* conn, int64_t before) noexcept nogil:
    """Nothing moved since then, nothing is owed, and no request waits for its turn or in the socket."""
    cdef uint8_t next_byte
    if conn.active_ns >= before or conn.refs != 1 or conn.stalled_until or conn.turn.line != LINE_NONE:
        return False
    return conn.choked or recv(conn.fd, &next_byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0


cdef void close_late(IoLoop* loop) noexcept nogil:
    cdef int64_t late = loop.limits.unauthenticated_ms_max * 1000000
    cdef int64_t idle_most = loop.limits.idle_ms_max * 1000000
    cdef Conn* conn = loop.conns
    cdef Conn* following
    cdef int64_t often = LATE_CHECK_NS
    if idle_most == 0 and (late == 0 or auth_at_first(loop.limits) != AUTH_WAITING):
        return
    if loop.late_check and loop.now < loop.late_check:
        return
    while conn != NULL:
        following = conn.next
        if late and conn.login.state == AUTH_WAITING and conn.since_ns < loop.now - late:
            loop.stats.closed_unauthenticated += 1
            close_bad(loop, conn, TOO_LONG_UNAUTHENTICATED)
        elif idle_most and idle(conn, loop.now - idle_most):
            loop.stats.closed_idle += 1
            close_bad(loop, conn, TOO_LONG_IDLE)
        conn = following
    if idle_most:
        often = min(often, idle_most // 4)
    if late:
        often = min(often, late // 4)
    loop.late_check = loop.now + often if loop.conns != NULL else 0


cdef void close_revoked(IoLoop* loop) noexcept nogil:
    cdef Conn* conn = loop.conns
    cdef Conn* following
    cdef int64_t revocations = bk_load(&loop.usage.revocations)
    if revocations == loop.revocations_seen:
        return
    loop.revocations_seen = revocations
    while conn != NULL:
        following = conn.next
        if conn.login.user != NULL and bk_load(&conn.login.user.revoked):
            close_bad(loop, conn, REVOKED)
        conn = following


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
