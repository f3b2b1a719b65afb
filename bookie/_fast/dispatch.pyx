"""Requests in, answers out: one place that decides, rooms below that do the work."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy

from bookie._fast.admission cimport admission
from bookie._fast.answers cimport answer_ack, answer_auth, answer_code, answer_read
from bookie._fast.gate cimport AUTH_WAITING, gate_admit
from bookie._fast.loop_state cimport AckQueue
from bookie._fast.read_path cimport (
    COUNT_MOST,
    ReadRequest,
    answer_begin,
    answer_from_memory,
    answer_release,
    pool_read_ahead,
    pool_submit,
)
from bookie._fast.request cimport (
    ADD_ENTRY,
    AUTH,
    FENCE,
    HIGH_PRIORITY,
    READ_ENTRY,
    RECOVERY_ADD,
    Request,
)
from bookie._fast.storage cimport stores_add, stores_fence, stores_request_flush
from bookie._fast.stores cimport journal_of
from bookie._fast.sync cimport bk_exchange, bk_load, now_ns
from bookie._fast.types cimport (
    BAD_REQUEST,
    BAD_VERSION,
    CLOSED,
    ENTRY_ID_LAST,
    FULL,
    OK,
    PENDING,
    READ_ONLY,
    TOO_MANY_REQUESTS,
    UNAUTHORIZED,
)
from bookie._fast.connection cimport conn_reserve
from bookie._fast.upgrade cimport start_tls
from bookie._fast.wire_v2 cimport BATCH_ANSWER_BYTES, FRAME_PREFIX, v2_parse, v2_version_ok

cdef enum:
    ACKS_FIRST = 1024


cdef Status serve_read(IoLoop* loop, Conn* conn, const ReadRequest* request) noexcept nogil:
    """From memory right here; from the disk by way of the read pool."""
    cdef Answer answer
    cdef Status status
    answer_begin(&answer, request)
    answer_from_memory(loop.stores, request, &answer)
    pool_read_ahead(loop.pool, request.ledger, &answer)
    if answer.status != PENDING:
        return answer_read(loop, conn, request, &answer)
    answer_release(&answer)
    status = pool_submit(loop.pool, request, &loop.inbox)
    if status == OK:
        conn.refs += 1
        return OK
    answer.status = status
    answer.count = 0
    return answer_read(loop, conn, request, &answer)


cdef void read_request(IoLoop* loop, Conn* conn, const Request* request, ReadRequest* read) noexcept nogil:
    """The limits of a batch read: count, and bytes of records beside the answer's 36 fixed bytes."""
    cdef int64_t limit
    read.ledger = request.ledger
    read.entry = request.entry
    read.request_id = request.request_id
    read.flags = request.flags
    read.protocol = request.protocol
    read.op = request.op
    read.version = request.version
    read.owner = conn
    read.count = 1
    read.bytes = 0
    if request.op == READ_ENTRY or request.entry == ENTRY_ID_LAST:
        return
    read.count = request.count_max if request.count_max > 0 else COUNT_MOST
    limit = request.size_max
    if limit > <int64_t> loop.limits.batch_bytes_max:
        limit = <int64_t> loop.limits.batch_bytes_max
    if limit > <int64_t> loop.limits.frame_bytes_max:
        limit = <int64_t> loop.limits.frame_bytes_max
    if limit > FRAME_PREFIX + BATCH_ANSWER_BYTES:
        read.bytes = <uint64_t> limit - (FRAME_PREFIX + BATCH_ANSWER_BYTES)
    else:
        read.count = 1


cdef bint ack_later(IoLoop* loop, Conn* conn, const Request* request, int64_t group,
                    ReadRequest* read) noexcept nogil:
    cdef int64_t at = <int64_t> (<uint64_t> request.ledger % loop.stores.journal_count)
    cdef AckQueue* queue = &loop.acks[at]
    cdef Ack* ring
    cdef Ack* ack
    cdef uint64_t room, i
    if queue.tail - queue.head == queue.room:
        room = queue.room * 2 if queue.room else ACKS_FIRST
        ring = <Ack*> malloc(room * sizeof(Ack))
        if ring == NULL:
            return False
        for i in range(queue.head, queue.tail):
            ring[i & (room - 1)] = queue.ring[i & (queue.room - 1)]
        free(queue.ring)
        queue.ring = ring
        queue.room = room
    ack = &queue.ring[queue.tail & (queue.room - 1)]
    queue.tail += 1
    ack.group = group
    ack.conn = conn
    ack.ledger = request.ledger
    ack.entry = request.entry
    ack.request_id = request.request_id
    ack.read = read
    ack.protocol = request.protocol
    ack.op = request.op
    ack.version = request.version
    conn.refs += 1
    loop.appended[at] += 1
    if not loop.waker.waiting:
        # a full barrier: either the committer sees this, or the loop sees the published group before it sleeps
        bk_exchange(&loop.waker.waiting, 1)
    return True


cdef bint out_of_patience(IoLoop* loop, Conn* conn) noexcept nogil:
    """No room for this request. True when its bounded wait is over; else it waits at the head of its connection."""
    cdef int64_t now = now_ns()
    stores_request_flush(loop.stores)
    if conn.stalled_until == 0:
        conn.stalled_until = now + loop.limits.throttle_ns
        loop.stalled += 1
        loop.stats.stalls += 1
        return False
    return now >= conn.stalled_until


cdef Status serve_add(IoLoop* loop, Conn* conn, const Request* request) noexcept nogil:
    cdef int64_t group = 0
    cdef Status status
    if bk_load(&journal_of(loop.stores, request.ledger).full):
        return answer_code(loop, conn, request, READ_ONLY)
    if bk_load(&loop.stores.read_only) and not (
            request.flags & HIGH_PRIORITY and bk_load(&loop.stores.high_priority_ok)):
        return answer_code(loop, conn, request, READ_ONLY)
    status = stores_add(loop.stores, request.ledger, request.entry, request.key, request.key_size, request.body,
                        request.body_size, request.flags & RECOVERY_ADD, &group)
    if status == FULL or status == TOO_MANY_REQUESTS:
        if not out_of_patience(loop, conn):
            return FULL
        status = TOO_MANY_REQUESTS
    if status == OK and group:
        if ack_later(loop, conn, request, group, NULL):
            return OK
        return CLOSED
    return answer_code(loop, conn, request, status)


cdef Status serve_fence(IoLoop* loop, Conn* conn, const Request* request) noexcept nogil:
    """Fence first; the read is answered when the fence record is on disk."""
    cdef int64_t group = 0
    cdef int64_t at
    cdef ReadRequest* read
    cdef Status status
    loop.stats.fences += 1
    if request.key == NULL:
        return answer_code(loop, conn, request, UNAUTHORIZED)
    status = stores_fence(loop.stores, request.ledger, request.key, request.key_size, &group)
    if status == FULL:
        if not out_of_patience(loop, conn):
            return FULL
        status = TOO_MANY_REQUESTS
    if status != OK:
        return answer_code(loop, conn, request, status)
    read = <ReadRequest*> malloc(sizeof(ReadRequest))
    if read == NULL:
        return CLOSED
    read_request(loop, conn, request, read)
    at = <int64_t> (<uint64_t> request.ledger % loop.stores.journal_count)
    if group == 0 or bk_load(&loop.stores.journals[at].synced_group) >= group:
        status = serve_read(loop, conn, read)
        free(read)
        return status
    if ack_later(loop, conn, request, group, read):
        return OK
    free(read)
    return CLOSED


cdef Status parse(Conn* conn, const uint8_t* frame, uint32_t size, Request* request) noexcept nogil:
    """The frame as a request. A connection that sent one frame of V2 speaks it for good."""
    conn.v2_only = True
    return v2_parse(frame, size, request)


cdef Status serve(IoLoop* loop, Conn* conn, const Request* request) noexcept nogil:
    """THE switch."""
    cdef ReadRequest read
    if admission(loop, conn, request) != OK:
        return answer_code(loop, conn, request, TOO_MANY_REQUESTS)
    if request.op == ADD_ENTRY:
        loop.stats.adds += 1
        return serve_add(loop, conn, request)
    if request.op == READ_ENTRY:
        loop.stats.reads += 1
    else:
        loop.stats.batch_reads += 1
    if request.flags & FENCE:
        return serve_fence(loop, conn, request)
    read_request(loop, conn, request, &read)
    return serve_read(loop, conn, &read)


cdef Status serve_start_tls(IoLoop* loop, Conn* conn) noexcept nogil:
    """Stands in for V3 until its parser is there: transaction 10."""
    cdef Status status = start_tls(loop, conn)
    cdef uint8_t* out
    if status == CLOSED:
        return CLOSED
    if status == OK:
        out = conn_reserve(conn, 17)
        memcpy(out, b"\x00\x00\x00\x0d\x0a\x06\x08\x03\x10\x09\x18\x0a\x10\x00\xd2\x06\x00", 17)
    else:
        out = conn_reserve(conn, 15)
        memcpy(out, b"\x00\x00\x00\x0b\x0a\x06\x08\x03\x10\x09\x18\x0a\x10\x94\x03", 15)
    return OK


cdef Status dispatch(IoLoop* loop, Conn* conn, const uint8_t* frame, uint32_t size) noexcept nogil:
    cdef Request request
    cdef Status status, admitted
    if size == 11 and memcmp(frame, b"\x0a\x06\x08\x03\x10\x09\x18\x0a\xd2\x06\x00", 11) == 0:
        return serve_start_tls(loop, conn)
    status = parse(conn, frame, size, &request)
    if status == CLOSED:
        return CLOSED
    if conn.auth == AUTH_WAITING:
        admitted = gate_admit(loop, conn, &request, status == OK, frame, size)
        if admitted == PENDING:
            return OK
        if admitted == CLOSED:
            return CLOSED
        if admitted != OK:
            return answer_code(loop, conn, &request, admitted)
    if request.op == AUTH:
        loop.stats.auths += 1
        return answer_auth(loop, conn, &request)
    if not v2_version_ok(request.version):
        return answer_code(loop, conn, &request, BAD_VERSION)
    if status != OK:
        return answer_code(loop, conn, &request, BAD_REQUEST)
    return serve(loop, conn, &request)


cdef Status dispatch_ack(IoLoop* loop, Ack* ack) noexcept nogil:
    cdef Status status
    if ack.read != NULL:
        status = serve_read(loop, ack.conn, ack.read) if ack.conn.fd >= 0 else OK
        free(ack.read)
        return status
    if ack.conn.fd < 0:
        return OK
    return answer_ack(loop, ack)


cdef Status dispatch_read(IoLoop* loop, Conn* conn, PoolJob* job) noexcept nogil:
    if conn.fd < 0:
        answer_release(&job.answer)
        return OK
    return answer_read(loop, conn, &job.request, &job.answer)


cdef Status dispatch_poll(IoLoop* loop, Conn* conn, const Poll* poll) noexcept nogil:
    return serve_read(loop, conn, &poll.request) if conn.fd >= 0 else OK
