"""The gate before dispatch: which requests are allowed before authentication, and jobs for Python."""
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy, memset

from bookie._fast.base.cursor cimport store_u32
from bookie._fast.base.sync cimport bk_add, bk_load
from bookie._fast.base.types cimport CLOSED, LENGTH_PREFIX, OK, PENDING, TOO_MANY_REQUESTS, UNAUTHORIZED
from bookie._fast.server.clear_auth cimport CLEAR_HELD, CLEAR_NONE
from bookie._fast.server.connection cimport conn_reserve, conn_set_auth
from bookie._fast.server.limits cimport AUTH_DONE, AUTH_OPEN, AUTH_WAITING
from bookie._fast.server.output cimport flush
from bookie._fast.server.policy cimport (
    PEER_BYTES,
    POLICY_AUTHENTICATED,
    POLICY_CLEAR,
    POLICY_CLOSED,
    POLICY_NOTHING,
    POLICY_REQUEST,
    POLICY_TURN_AWAY,
    POLICY_UPGRADED,
    POLICY_UPGRADED_KNOWN,
    PolicyKind,
    policy_free,
    policy_job,
    policy_share,
    policy_submit,
)
from bookie._fast.server.rejections cimport (
    BAD_FRAME,
    EARLY_BATCH,
    IN_CLEAR,
    OTHER_PLUGIN,
    REVOKED,
    TOO_LONG_LOGIN,
    TOO_MANY_LOGINS,
)
from bookie._fast.server.users cimport MAY_ADMIN, MAY_READ, MAY_WRITE, login_enter, login_leave
from bookie._fast.wire.request cimport (
    ADD_ENTRY,
    AUTH,
    BATCH_READ_ENTRY,
    FENCE,
    FORCE_LEDGER,
    GET_BOOKIE_INFO,
    GET_LIST_OF_ENTRIES_OF_LEDGER,
    READ_ENTRY,
    READ_LAC,
    START_TLS,
    WRITE_CLOSE,
    WRITE_LAC,
)

cdef extern from "<sys/socket.h>" nogil:
    struct sockaddr:
        pass
    int getpeername(int, sockaddr*, unsigned int*) noexcept


cdef Status submit(IoLoop* loop, Conn* conn, PolicyKind kind, uint8_t protocol, uint8_t op, const uint8_t* frame,
                   uint32_t size) noexcept nogil:
    cdef PolicyJob* job
    cdef unsigned int peer_size = PEER_BYTES
    cdef Status status
    if loop.policy == NULL or (op != AUTH and conn.login.jobs >= policy_share(loop.policy)):
        return TOO_MANY_REQUESTS
    job = policy_job(frame, size)
    if job == NULL:
        return TOO_MANY_REQUESTS
    job.inbox = &loop.policy_done
    job.owner = conn
    job.begun = loop.now
    job.session = conn.login.session
    job.kind = kind
    job.protocol = protocol
    job.op = op
    if kind != POLICY_CLOSED and getpeername(conn.fd, <sockaddr*> job.peer, &peer_size) != 0:
        memset(job.peer, 0, PEER_BYTES)
    status = policy_submit(loop.policy, job)
    if status != OK:
        policy_free(job)
    elif kind != POLICY_CLOSED:
        conn.refs += 1
        conn.login.jobs += 1
    return status


cdef Status authenticate(IoLoop* loop, Conn* conn, PolicyKind kind, uint8_t protocol, const uint8_t* frame,
                         uint32_t size) noexcept nogil:
    """Submit a step of the connection's authentication. It runs alone: no other frame is served meanwhile."""
    if loop.policy == NULL or size > loop.policy.frame_bytes_max:
        conn.why = TOO_LONG_LOGIN
        return CLOSED
    if conn.login.session == 0:
        conn.login.session = bk_add(&loop.policy.sessions, 1)
    if submit(loop, conn, kind, protocol, AUTH, frame, size) != OK:
        conn.why = TOO_MANY_LOGINS
        return CLOSED
    conn.gated = True
    return PENDING


cdef uint8_t right_of(const Request* request) noexcept nogil:
    """Return the right that this request needs; 0 if none, or if it is refused for another reason."""
    cdef uint8_t op = request.op
    if op == READ_ENTRY or op == BATCH_READ_ENTRY:
        return MAY_WRITE if request.flags & FENCE else MAY_READ
    if op == READ_LAC or op == GET_BOOKIE_INFO:
        return MAY_READ
    if op == ADD_ENTRY or op == WRITE_LAC or op == FORCE_LEDGER or op == WRITE_CLOSE:
        return MAY_WRITE
    return MAY_ADMIN if op == GET_LIST_OF_ENTRIES_OF_LEDGER else 0


cdef Status by_right(IoLoop* loop, Conn* conn, const Request* request) noexcept nogil:
    cdef uint8_t right = right_of(request)
    if conn.login.may & right == right:
        return OK
    loop.stats.refused_rights += 1
    if conn.login.user != NULL:
        bk_add(&conn.login.user.refused, 1)
    return UNAUTHORIZED


cdef Status gate_admit(IoLoop* loop, Conn* conn, const Request* request, bint parsed, const uint8_t* frame,
                       uint32_t size) noexcept nogil:
    cdef PolicyKind kind = POLICY_REQUEST
    cdef bint mute = request.protocol == 2 and (request.op == BATCH_READ_ENTRY or request.op == AUTH)
    if conn.login.state != AUTH_WAITING:
        return by_right(loop, conn, request) if parsed else OK
    if request.op == START_TLS and parsed:
        return OK
    if loop.limits.tls_required and conn.tls == NULL:
        conn.why = IN_CLEAR
        return CLOSED if mute else UNAUTHORIZED
    if request.op == AUTH and parsed:
        loop.stats.auths += 1
        if conn.clear_auth == CLEAR_HELD:
            conn.clear_auth = CLEAR_NONE
            kind = POLICY_CLEAR
        return authenticate(loop, conn, kind, request.protocol, frame, size)
    loop.stats.refused_unauthenticated += 1
    if mute:
        conn.why = EARLY_BATCH if request.op == BATCH_READ_ENTRY else BAD_FRAME
        return CLOSED
    return UNAUTHORIZED


cdef Status gate_submit(IoLoop* loop, Conn* conn, const Request* request, const uint8_t* frame,
                        uint32_t size) noexcept nogil:
    return submit(loop, conn, POLICY_REQUEST, request.protocol, request.op, frame, size)


cdef Status gate_upgraded(IoLoop* loop, Conn* conn, const uint8_t* certificate, uint32_t size) noexcept nogil:
    cdef PolicyKind kind = POLICY_UPGRADED
    if not loop.limits.authenticate:
        conn_set_auth(conn, AUTH_OPEN)
        return OK
    if conn.login.state == AUTH_DONE:
        # The peer that logged in in clear need not be the one that completed the handshake; the provider knows if that
        # matters.
        if loop.limits.clear_login:
            kind = POLICY_UPGRADED_KNOWN
        conn_set_auth(conn, AUTH_WAITING)
        conn.since_ns = loop.now
    if authenticate(loop, conn, kind, 3, certificate, size) == PENDING:
        return OK
    return CLOSED


cdef void enter(Conn* conn, PolicyJob* job) noexcept nogil:
    """Apply a login. Without a new user, because the login in clear counts, the connection keeps its present one."""
    if job.user != NULL or conn.login.user == NULL:
        login_enter(&conn.login, job.user, job.may)
        job.user = NULL
    conn_set_auth(conn, AUTH_DONE)
    conn.login.session = 0       # Python has forgotten the session already


cdef Status gate_answer(IoLoop* loop, Conn* conn, PolicyJob* job) noexcept nogil:
    cdef uint8_t* out
    conn.login.jobs -= 1
    if conn.fd < 0:
        gate_closed(loop, conn)
        return OK
    if job.op == AUTH:
        conn.gated = False
    if job.answer_size:
        out = conn_reserve(conn, LENGTH_PREFIX + job.answer_size)
        if out == NULL:
            return CLOSED
        store_u32(out, job.answer_size)
        memcpy(out + LENGTH_PREFIX, job.answer, job.answer_size)
    if job.action == POLICY_AUTHENTICATED:
        enter(conn, job)
        if conn.login.user == NULL or not bk_load(&conn.login.user.revoked):
            return OK
        conn.why = REVOKED       # since the login began
    elif job.action == POLICY_NOTHING:
        return OK
    elif job.action == POLICY_TURN_AWAY:
        conn.why = OTHER_PLUGIN
    flush(loop, conn)            # send what the socket takes now; the connection is closed anyway
    return CLOSED


cdef void gate_closed(IoLoop* loop, Conn* conn) noexcept nogil:
    login_leave(&conn.login)
    if conn.login.session == 0 or conn.login.jobs:
        return
    submit(loop, conn, POLICY_CLOSED, 0, 0, NULL, 0)
    conn.login.session = 0
