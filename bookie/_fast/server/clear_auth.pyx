"""AUTH in clear after START_TLS: parsed as its bytes arrive, held, and told from TLS by its first byte."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

from bookie._fast.base.cursor cimport load_i32
from bookie._fast.base.types cimport CLOSED, CORRUPT, NEED_MORE, OK
from bookie._fast.server.connection cimport conn_hold_room
from bookie._fast.server.loop_state cimport INPUT_BYTES
from bookie._fast.wire.proto cimport NESTING_MAX
from bookie._fast.wire.request cimport AUTH, START_TLS, Request
from bookie._fast.wire.v2 cimport FRAME_PREFIX, v2_parse
from bookie._fast.wire.v3 cimport V3_FIRST_BYTE, v3_parse

cdef enum:
    LENGTH_FIRST = 0             # of a length below 16 MiB; a TLS record begins with 20 or more
    START_TLS_BYTES_MAX = 64     # of a frame with START_TLS; Java's has 15


cdef bint is_auth(const uint8_t* frame, uint32_t size) noexcept nogil:
    """Return whether the frame is AUTH in either protocol; Java's V2 client sends only START_TLS in V3."""
    cdef Request request
    cdef Status status = v3_parse(frame, size, NESTING_MAX, &request)
    if status == CORRUPT:
        status = v2_parse(frame, size, &request)
    return status == OK and request.op == AUTH


cdef Status clear_scan(const IoLoop* loop, const uint8_t* data, uint64_t size, uint64_t* used) noexcept nogil:
    cdef int64_t length
    if size == 0:
        return NEED_MORE
    if loop.policy == NULL or data[0] != LENGTH_FIRST or not loop.limits.clear_login:
        return CLOSED
    if size < FRAME_PREFIX:
        return NEED_MORE
    length = load_i32(data)
    if length > loop.policy.frame_bytes_max or length > INPUT_BYTES - FRAME_PREFIX:
        return CLOSED
    if <uint64_t> length > size - FRAME_PREFIX:
        return NEED_MORE
    used[0] = FRAME_PREFIX + <uint64_t> length
    return OK if is_auth(data + FRAME_PREFIX, <uint32_t> length) else CLOSED


cdef Status clear_take(const IoLoop* loop, Conn* conn, const uint8_t* data, uint32_t size,
                       uint32_t* used) noexcept nogil:
    cdef uint64_t before = conn.held_size
    cdef uint64_t whole = 0
    cdef Status status
    used[0] = 0
    if before == 0 and data[0] != LENGTH_FIRST:
        conn.clear_auth = CLEAR_NONE
        return OK
    if not conn_hold_room(conn, before + size):
        return CLOSED
    memcpy(conn.held + before, data, size)
    status = clear_scan(loop, conn.held, before + size, &whole)
    if status == CLOSED:
        return CLOSED
    if status == NEED_MORE:
        whole = before + size
    else:
        conn.clear_auth = CLEAR_HELD
    conn.held_size = whole
    used[0] = <uint32_t> (whole - before)
    return OK


cdef void clear_put_behind(const IoLoop* loop, uint8_t* data, uint64_t size) noexcept nogil:
    cdef Request request
    cdef uint8_t[START_TLS_BYTES_MAX] start
    cdef uint64_t auth = 0
    cdef uint64_t rest
    if loop.tls_loop_count == 0 or size <= FRAME_PREFIX or data[FRAME_PREFIX] >= V3_FIRST_BYTE:
        return
    if clear_scan(loop, data, size, &auth) != OK:
        return
    rest = size - auth
    if rest <= FRAME_PREFIX or rest > START_TLS_BYTES_MAX or load_i32(data + auth) != <int64_t> rest - FRAME_PREFIX:
        return
    memcpy(start, data + auth, rest)
    if v3_parse(start + FRAME_PREFIX, <uint32_t> rest - FRAME_PREFIX, NESTING_MAX, &request) != OK:
        return
    if request.op == START_TLS:
        memmove(data + rest, data, auth)
        memcpy(data, start, rest)
