"""From a socket to dispatch: receive, cut frames, keep those that are incomplete or have to wait. The loop's thread."""
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from bookie._fast.base.cursor cimport load_i32
from bookie._fast.base.planted cimport PLANT_INPUT_DROPPED, bk_planted
from bookie._fast.base.sync cimport bk_load
from bookie._fast.base.tls cimport TLS_HANDSHAKE, TLS_OPEN, tls_read, tls_take
from bookie._fast.base.types cimport CLOSED, FULL, OK, Status
from bookie._fast.server.admission cimport hold_back
from bookie._fast.server.clear_auth cimport CLEAR_AWAITED, clear_put_behind, clear_scan, clear_take
from bookie._fast.server.connection cimport conn_goes_on, conn_hold, conn_is_full
from bookie._fast.server.dispatch cimport dispatch
from bookie._fast.server.interest cimport is_served
from bookie._fast.server.limits cimport AUTH_WAITING
from bookie._fast.server.loop_ops cimport LOOP_ADD_BLOCKED, op_took
from bookie._fast.server.loop_state cimport INPUT_BYTES, SEALED_BYTES
from bookie._fast.server.membership cimport close_bad, close_conn, close_failed
from bookie._fast.server.output cimport flush
from bookie._fast.server.rejections cimport (
    BAD_FRAME,
    BAD_HANDSHAKE,
    BAD_LENGTH,
    CLEAR_AFTER_TLS,
    TOO_LONG_LOGIN,
    TOO_MUCH_INPUT,
)
from bookie._fast.server.slow_writers cimport hold_room
from bookie._fast.server.turns cimport turn_spend
from bookie._fast.server.upgrade cimport shake_hands
from bookie._fast.wire.v2 cimport FRAME_PREFIX

cdef extern from "<sys/socket.h>" nogil:
    ssize_t recv(int, void*, size_t, int) noexcept
    int MSG_DONTWAIT

cdef enum:
    TAKE_FIRST = 1 << 15
    TAKE_LEAST = 1 << 12


cdef bint choke(IoLoop* loop, Conn* conn) noexcept nogil:
    """Handle too much output, waiting or to come: send it now, and stop serving the connection if that is no help."""
    if not conn_is_full(conn):
        return False
    if flush(loop, conn) == CLOSED:
        close_conn(loop, conn)
        return True
    conn.choked = not conn_goes_on(conn)
    loop.stats.choked += conn.choked
    return conn.choked


cdef uint64_t serve_frames(IoLoop* loop, Conn* conn, uint8_t* data, uint64_t size) noexcept nogil:
    """Cut and dispatch complete frames; return the number of bytes consumed. The connection may get closed."""
    cdef uint64_t at = 0
    cdef uint64_t clear = 0
    cdef int64_t length
    cdef Status status
    if conn.tls == NULL and not conn.v2_only:
        clear_put_behind(loop, data, size)
    while conn.turn.credit > 0 and not conn.gated and not conn.upgrading and size - at >= FRAME_PREFIX:
        length = load_i32(data + at)
        if length < 0 or length > <int64_t> conn.limits.frame_bytes_max - FRAME_PREFIX:
            close_bad(loop, conn, BAD_LENGTH)
            return size
        if conn.login.state == AUTH_WAITING and length > loop.policy.frame_bytes_max:
            close_bad(loop, conn, TOO_LONG_LOGIN)
            return size
        if <uint64_t> length > size - at - FRAME_PREFIX:
            break
        if hold_back(loop, conn):
            break
        status = dispatch(loop, conn, data + at + FRAME_PREFIX, <uint32_t> length)
        if status == FULL and not bk_planted(PLANT_INPUT_DROPPED):
            break
        if conn.stalled_until:
            if conn.stalled_until != INT64_MAX:
                op_took(&loop.ops, LOOP_ADD_BLOCKED, status != CLOSED,
                        loop.now - conn.stalled_until + loop.limits.throttle_ms_max * 1000000)
            conn.stalled_until = 0
            loop.stalled -= 1
        if status == CLOSED:
            close_failed(loop, conn, BAD_FRAME)
            return size
        conn.active_ns = loop.now
        at += FRAME_PREFIX + <uint64_t> length
        turn_spend(conn, <uint64_t> length)
        if choke(loop, conn) or conn.fd < 0:
            break
    if conn.upgrading and conn.fd >= 0:      # a closed one has lost its held input
        status = clear_scan(loop, data + at, size - at, &clear)
        if status == CLOSED or (status == OK and clear < size - at):
            close_bad(loop, conn, CLEAR_AFTER_TLS)
            return size
    return at


cdef void keep_rest(IoLoop* loop, Conn* conn, const uint8_t* data, uint64_t size, uint64_t used) noexcept nogil:
    """Hold what is left of the input behind the `used` bytes of frames that were served."""
    if conn.fd < 0:
        return
    if used or conn.held_size == 0:
        conn.held_since = loop.now
    if not hold_room(loop, conn, size) or not conn_hold(conn, data, size):
        close_bad(loop, conn, TOO_MUCH_INPUT)


cdef void serve_held(IoLoop* loop, Conn* conn) noexcept nogil:
    """Serve held input, which waited for its turn, for room, for the peer to read, or for a response of Python."""
    cdef uint64_t used
    if conn.held_size == 0:
        return
    used = serve_frames(loop, conn, conn.held, conn.held_size)
    if conn.fd >= 0 and used:
        keep_rest(loop, conn, conn.held + used, conn.held_size - used, used)


cdef bint hold_more(IoLoop* loop, Conn* conn, uint64_t size) noexcept nogil:
    """Make room in the connection's own buffer for `size` more bytes."""
    cdef uint64_t room = conn.held_size + size
    if room <= conn.held_room:
        return True
    return hold_room(loop, conn, room if room > conn.held_room * 2 else conn.held_room * 2)


cdef void decrypt_long(IoLoop* loop, Conn* conn) noexcept nogil:
    """Decrypt into the connection's own buffer, in which a long frame grows."""
    cdef uint64_t got = tls_read(conn.tls, loop.input, INPUT_BYTES * 2)
    if not hold_more(loop, conn, got):
        close_bad(loop, conn, TOO_MUCH_INPUT)
        return
    memcpy(conn.held + conn.held_size, loop.input, got)
    conn.held_size += got
    if conn.held_size >= <uint64_t> load_i32(conn.held) + FRAME_PREFIX:
        serve_held(loop, conn)


cdef void decrypt(IoLoop* loop, Conn* conn) noexcept nogil:
    cdef uint64_t have = conn.held_size
    cdef uint64_t used
    if have:
        memcpy(loop.input, conn.held, have)
    have += tls_read(conn.tls, loop.input + have, INPUT_BYTES * 2 - have)
    used = serve_frames(loop, conn, loop.input, have)
    if conn.fd >= 0:
        keep_rest(loop, conn, loop.input + used, have - used, used)


cdef ssize_t take_in(IoLoop* loop, Conn* conn, uint8_t* to, uint64_t most) noexcept nogil:
    """Receive bytes; return 0 if there are none now, or the connection was closed."""
    cdef ssize_t n = recv(conn.fd, to, most, MSG_DONTWAIT)
    conn.turn.more = n > 0 and <uint64_t> n == most
    if n > 0:
        loop.stats.bytes_in += n
        return n
    if n == 0 or (errno != EAGAIN and errno != EINTR):
        close_conn(loop, conn)
    return 0


cdef uint64_t worth_taking(const Conn* conn) noexcept nogil:
    """Return how many bytes to receive: what its last turns served, but at least the rest of a frame that began."""
    cdef uint64_t most = conn.turn.take if conn.turn.take else <uint64_t> TAKE_FIRST
    cdef uint64_t rest = 0
    if bk_load(&conn.usage.input_bytes) > conn.limits.input_bytes_max // 2:
        most = TAKE_LEAST
    if conn.held_size >= FRAME_PREFIX:
        rest = <uint64_t> load_i32(conn.held) + FRAME_PREFIX - conn.held_size
    return max(most, rest)


cdef void receive_sealed(IoLoop* loop, Conn* conn) noexcept nogil:
    """Receive and decrypt. Everything that the socket gave is decrypted now: OpenSSL keeps less than a record."""
    cdef Status status
    cdef uint32_t clear = 0
    cdef ssize_t n = take_in(loop, conn, loop.encrypted, min(worth_taking(conn), <uint64_t> SEALED_BYTES))
    if n == 0:
        return
    if conn.clear_auth == CLEAR_AWAITED:
        if clear_take(loop, conn, loop.encrypted, <uint32_t> n, &clear) == CLOSED:
            close_bad(loop, conn, CLEAR_AFTER_TLS)
            return
        if clear == <uint32_t> n:
            return
    status = OK if tls_take(conn.tls, loop.encrypted + clear, <uint32_t> n - clear) else CLOSED
    if status == OK and conn.tls.state == TLS_HANDSHAKE:
        status = shake_hands(loop, conn)
    if status == CLOSED:
        close_failed(loop, conn, BAD_HANDSHAKE)
    if status != OK:
        return
    if conn.held_size >= FRAME_PREFIX and <uint64_t> load_i32(conn.held) + FRAME_PREFIX > INPUT_BYTES:
        decrypt_long(loop, conn)
    else:
        decrypt(loop, conn)
    if conn.fd >= 0 and conn.tls.state != TLS_OPEN:
        close_conn(loop, conn)


cdef bint receive_long(IoLoop* loop, Conn* conn) noexcept nogil:
    """Receive a frame larger than the loop's buffer into the connection's own. Return False if it is smaller."""
    cdef uint64_t total, room
    cdef ssize_t n
    if conn.held_size < FRAME_PREFIX:
        return False
    total = <uint64_t> load_i32(conn.held) + FRAME_PREFIX
    if total <= INPUT_BYTES or conn.held_size >= total:
        return False
    room = conn.held_size * 2 if conn.held_size * 2 < total else total
    if room < INPUT_BYTES:
        room = INPUT_BYTES
    if conn.held_size == conn.held_room and not hold_room(loop, conn, room):
        close_bad(loop, conn, TOO_MUCH_INPUT)
        return True
    room = conn.held_room if conn.held_room < total else total
    n = take_in(loop, conn, conn.held + conn.held_size, min(room - conn.held_size, <uint64_t> INPUT_BYTES))
    conn.turn.credit -= n
    if conn.fd < 0:
        return True
    conn.held_size += n
    if conn.held_size == total:
        serve_held(loop, conn)
    return True


cdef void receive(IoLoop* loop, Conn* conn) noexcept nogil:
    cdef uint64_t have, used
    cdef ssize_t n
    if conn.tls != NULL:
        receive_sealed(loop, conn)
        return
    if receive_long(loop, conn):
        return
    have = conn.held_size
    if have:
        memcpy(loop.input, conn.held, have)
    n = take_in(loop, conn, loop.input + have, min(worth_taking(conn), INPUT_BYTES * 2 - have))
    if n == 0:
        return
    have += n
    used = serve_frames(loop, conn, loop.input, have)
    if conn.fd >= 0:
        keep_rest(loop, conn, loop.input + used, have - used, used)


cdef void learn_take(Conn* conn) noexcept nogil:
    """Adapt how much to receive: bytes that are not served at once cost memory, and too few at a time cost calls."""
    cdef uint32_t take = conn.turn.take if conn.turn.take else <uint32_t> TAKE_FIRST
    if conn.turn.credit <= 0 and conn.held_size:
        conn.turn.take = max(take // 2, <uint32_t> TAKE_LEAST)
    elif conn.turn.more:
        conn.turn.take = min(take * 2, <uint32_t> INPUT_BYTES * 2)


cdef void take_turn(IoLoop* loop, Conn* conn) noexcept nogil:
    if conn.tls == NULL or conn.tls.state == TLS_OPEN:       # input held during a handshake is served later
        serve_held(loop, conn)
    conn.turn.more = bk_load(&loop.stopping) == 0
    if conn.turn.more and conn.turn.credit > 0 and is_served(conn):
        receive(loop, conn)      # once, so that journals and peers can go on before more is served
        if conn.fd >= 0:
            learn_take(conn)
