"""Blocking system calls with time limits. A wait that is shorter than the socket's tick uses poll first."""
from libc.errno cimport EAGAIN, EINTR, errno
from libc.limits cimport INT_MAX
from posix.time cimport timeval

from bookie._fast.base.openssl_c cimport SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE, openssl
from bookie._fast.base.poll cimport POLLIN, POLLOUT, poll, pollfd
from bookie._fast.base.sync cimport now_ns

cdef extern from "<sys/socket.h>" nogil:
    ssize_t send(int, const void*, size_t, int) noexcept
    ssize_t recv(int, void*, size_t, int) noexcept
    int setsockopt(int, int, int, const void*, unsigned int) noexcept
    int MSG_NOSIGNAL
    int SOL_SOCKET
    int SO_RCVTIMEO
    int SO_SNDTIMEO

cdef enum:
    MS = 1000000


cdef bint socket_set_tick(DirectSocket* socket, int64_t tick_ns) noexcept nogil:
    cdef timeval limit
    limit.tv_sec = tick_ns // 1000000000
    limit.tv_usec = tick_ns % 1000000000 // 1000
    socket.tick_ns = tick_ns
    return (setsockopt(socket.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(timeval)) == 0
            and setsockopt(socket.fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(timeval)) == 0)


cdef Outcome await_ready(DirectSocket* socket, short events, int64_t deadline_ns) noexcept nogil:
    """Return DONE at once if more than a tick is left, and otherwise when the socket is ready."""
    cdef int64_t left = deadline_ns - now_ns()
    cdef pollfd one
    cdef int n
    if left > socket.tick_ns:
        return DONE
    one.fd, one.events, one.revents = socket.fd, events, 0
    n = poll(&one, 1, <int> ((left + MS - 1) // MS) if left > 0 else 0)
    if n < 0:
        return INTERRUPTED if errno == EINTR else LOST
    return DONE if n > 0 else LATE


cdef Outcome outcome_of(DirectSocket* socket, ssize_t n, int64_t deadline_ns) noexcept nogil:
    """Return what a call that moved no bytes means: INTERRUPTED also after a tick, DONE if the caller tries again."""
    cdef int error = errno
    if socket.ssl != NULL:
        return sealed_wait(socket, <int> n, deadline_ns)
    if n == 0:
        return LOST
    if error == EINTR:
        return INTERRUPTED
    if error != EAGAIN:
        return LOST
    return LATE if now_ns() >= deadline_ns else INTERRUPTED


cdef Outcome sealed_wait(DirectSocket* socket, int result, int64_t deadline_ns) noexcept nogil:
    """Wait, a tick at most, until the socket is ready for what OpenSSL needs. DONE: the caller tries again."""
    cdef int reason = openssl.ssl_get_error(socket.ssl, result)
    cdef int64_t left = deadline_ns - now_ns()
    cdef pollfd one
    cdef int n
    if reason != SSL_ERROR_WANT_READ and reason != SSL_ERROR_WANT_WRITE:
        return LOST
    if left <= 0:
        return LATE
    one.fd, one.events, one.revents = socket.fd, POLLIN if reason == SSL_ERROR_WANT_READ else POLLOUT, 0
    n = poll(&one, 1, <int> ((min(left, socket.tick_ns) + MS - 1) // MS))
    if n < 0 and errno != EINTR:
        return LOST
    return DONE if n > 0 else INTERRUPTED


cdef Outcome socket_send(DirectSocket* socket, const uint8_t* data, size_t size, int64_t deadline_ns,
                         size_t* sent) noexcept nogil:
    cdef Outcome outcome
    cdef ssize_t n
    cdef size_t left
    while sent[0] < size:
        left = size - sent[0]
        if socket.ssl != NULL:
            openssl.err_clear_error()
            n = openssl.ssl_write(socket.ssl, <void*> (data + sent[0]), <int> left if left < INT_MAX else INT_MAX)
        else:
            n = send(socket.fd, data + sent[0], left, MSG_NOSIGNAL)
        if n > 0:
            sent[0] += <size_t> n
            continue
        outcome = outcome_of(socket, n, deadline_ns)
        if outcome != DONE:
            return outcome
    return DONE


cdef Outcome socket_receive(DirectSocket* socket, uint8_t* to, size_t room, int64_t deadline_ns,
                            size_t* got) noexcept nogil:
    cdef Outcome outcome
    cdef ssize_t n
    while True:
        if socket.ssl == NULL:
            outcome = await_ready(socket, POLLIN, deadline_ns)
            if outcome != DONE:
                return outcome
        if socket.ssl != NULL:
            openssl.err_clear_error()
            n = openssl.ssl_read(socket.ssl, to, <int> room if room < INT_MAX else INT_MAX)
        else:
            n = recv(socket.fd, to, room, 0)
        if n > 0:
            got[0] = <size_t> n
            return DONE
        outcome = outcome_of(socket, n, deadline_ns)
        if outcome != DONE:
            return outcome
