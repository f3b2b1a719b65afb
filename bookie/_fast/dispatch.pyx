"""Requests in, answers out: one place that decides, rooms below that do the work."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from bookie._fast.connection cimport conn_reserve, conn_slice
from bookie._fast.cursor cimport store_u32
from bookie._fast.loop_state cimport AckQueue
from bookie._fast.read_path cimport (
    COUNT_MOST,
    ReadRequest,
    answer_begin,
    answer_from_memory,
    answer_release,
    pool_read_ahead,
    pool_submit,
    region_unpin,
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
    LENGTH_PREFIX,
    MASTER_KEY_BYTES,
    OK,
    PENDING,
    READ_ONLY,
    TOO_MANY_REQUESTS,
    UNAUTHORIZED,
)
from bookie._fast.wire_v2 cimport (
    ANSWER_BYTES,
    BATCH_ANSWER_BYTES,
    FLAG_FENCE,
    FLAG_HIGH_PRIORITY,
    FLAG_RECOVERY_ADD,
    FRAME_PREFIX,
    OP_ADD,
    OP_AUTH,
    OP_BATCH_READ,
    OP_READ,
    V2Request,
    v2_answer,
    v2_batch_answer,
    v2_code,
    v2_header,
    v2_parse,
    v2_version_ok,
)

cdef enum:
    COPY_MOST = 4096             # shorter pieces are copied, longer ones sent from where they lie
    AUTH_VERSION = 2
    ACKS_FIRST = 1024

# AuthMessage{authPluginName "AuthDisabledPlugin", payload ""}: what a bookie without auth answers to any AUTH
cdef const char* AUTH_DISABLED = b"\x0a\x12AuthDisabledPlugin\x12\x00"
cdef enum:
    AUTH_DISABLED_BYTES = 22


cdef Status answer_code(IoLoop* loop, Conn* conn, const V2Request* request, Status status) noexcept nogil:
    """An answer without entries: the acknowledgement of an add, or a refusal."""
    cdef uint8_t* out
    if status != OK:
        loop.stats.errors[<int> status] += 1
    if request.op == OP_BATCH_READ:
        out = conn_reserve(conn, FRAME_PREFIX + BATCH_ANSWER_BYTES)
        if out == NULL:
            return CLOSED
        v2_batch_answer(out, request.version, v2_code(status), request.ledger, request.entry, request.request_id, 0)
        return OK
    out = conn_reserve(conn, FRAME_PREFIX + ANSWER_BYTES)
    if out == NULL:
        return CLOSED
    v2_answer(out, request.version, request.op, v2_code(status), request.ledger, request.entry, 0)
    return OK


cdef Status put_part(Conn* conn, const uint8_t* base, uint64_t size, Answer* answer, uint32_t slot) noexcept nogil:
    """Send one slice: by copy when short, else by reference, which takes over its pin."""
    cdef uint8_t* out
    if size > COPY_MOST and conn_slice(conn, base, size, answer.regions[slot]):
        return OK
    out = conn_reserve(conn, size)
    if out != NULL:
        memcpy(out, base, size)
    region_unpin(answer.regions[slot])
    return OK if out != NULL else CLOSED


cdef Status answer_read(IoLoop* loop, Conn* conn, const ReadRequest* request, Answer* answer) noexcept nogil:
    """Write a READ or BATCH_READ answer: one header, then the slices. Gives up the answer's pins."""
    cdef uint8_t* out
    cdef uint32_t i, payload
    cdef Status status = OK
    cdef V2Request refused
    if answer.status != OK or answer.count == 0:
        refused.op = request.op
        refused.version = request.version
        refused.ledger = request.ledger
        refused.entry = request.entry
        refused.request_id = request.request_id
        return answer_code(loop, conn, &refused, answer.status)
    loop.stats.read_entries += answer.count
    if request.op == OP_BATCH_READ:
        payload = <uint32_t> answer.bytes
        out = conn_reserve(conn, FRAME_PREFIX + BATCH_ANSWER_BYTES)
        if out != NULL:
            v2_batch_answer(out, request.version, 0, request.ledger, request.entry, request.request_id, payload)
    else:
        payload = <uint32_t> answer.bytes - LENGTH_PREFIX
        answer.parts[0].base += LENGTH_PREFIX
        answer.parts[0].size -= LENGTH_PREFIX
        out = conn_reserve(conn, FRAME_PREFIX + ANSWER_BYTES)
        if out != NULL:
            v2_answer(out, request.version, OP_READ, 0, request.ledger, request.entry, payload)
    if out == NULL:
        answer_release(answer)
        return CLOSED
    for i in range(answer.slices):
        if status == OK:
            status = put_part(conn, answer.parts[i].base, answer.parts[i].size, answer, i)
        else:
            region_unpin(answer.regions[i])
    answer.slices = 0
    return status


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


cdef void read_request(IoLoop* loop, Conn* conn, const V2Request* request, ReadRequest* read) noexcept nogil:
    """The limits of a batch read: count, and bytes of records beside the answer's 36 fixed bytes."""
    cdef int64_t limit
    read.ledger = request.ledger
    read.entry = request.entry
    read.request_id = request.request_id
    read.op = request.op
    read.version = request.version
    read.owner = conn
    read.count = 1
    read.bytes = 0
    if request.op == OP_READ or request.entry == ENTRY_ID_LAST:
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


cdef bint ack_later(IoLoop* loop, Conn* conn, const V2Request* request, int64_t group,
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
    ack.read = read
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


cdef Status serve_add(IoLoop* loop, Conn* conn, const V2Request* request) noexcept nogil:
    cdef int64_t group = 0
    cdef Status status
    if bk_load(&journal_of(loop.stores, request.ledger).full):
        return answer_code(loop, conn, request, READ_ONLY)
    if bk_load(&loop.stores.read_only) and not (
            request.flags & FLAG_HIGH_PRIORITY and bk_load(&loop.stores.high_priority_ok)):
        return answer_code(loop, conn, request, READ_ONLY)
    status = stores_add(loop.stores, request.ledger, request.entry, request.key, MASTER_KEY_BYTES, request.body,
                        request.body_size, request.flags & FLAG_RECOVERY_ADD, &group)
    if status == FULL or status == TOO_MANY_REQUESTS:
        if not out_of_patience(loop, conn):
            return FULL
        status = TOO_MANY_REQUESTS
    if status == OK and group:
        if ack_later(loop, conn, request, group, NULL):
            return OK
        return CLOSED
    return answer_code(loop, conn, request, status)


cdef Status serve_fence(IoLoop* loop, Conn* conn, const V2Request* request) noexcept nogil:
    """Fence first; the read is answered when the fence record is on disk."""
    cdef int64_t group = 0
    cdef int64_t at
    cdef ReadRequest* read
    cdef Status status
    loop.stats.fences += 1
    if request.key == NULL:
        return answer_code(loop, conn, request, UNAUTHORIZED)
    status = stores_fence(loop.stores, request.ledger, request.key, MASTER_KEY_BYTES, &group)
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


cdef Status serve_auth(IoLoop* loop, Conn* conn) noexcept nogil:
    cdef uint8_t* out = conn_reserve(conn, FRAME_PREFIX + 4 + AUTH_DISABLED_BYTES)
    loop.stats.auths += 1
    if out == NULL:
        return CLOSED
    store_u32(out, 4 + AUTH_DISABLED_BYTES)
    store_u32(out + 4, v2_header(AUTH_VERSION, OP_AUTH, 0))
    memcpy(out + 8, AUTH_DISABLED, AUTH_DISABLED_BYTES)
    return OK


cdef Status dispatch(IoLoop* loop, Conn* conn, const uint8_t* frame, uint32_t size) noexcept nogil:
    cdef V2Request request
    cdef ReadRequest read
    cdef Status status = v2_parse(frame, size, &request)
    if status == CLOSED:
        return CLOSED
    if request.op == OP_AUTH:
        return serve_auth(loop, conn)
    if not v2_version_ok(request.version):
        return answer_code(loop, conn, &request, BAD_VERSION)
    if status != OK:
        return answer_code(loop, conn, &request, BAD_REQUEST)
    if request.op == OP_ADD:
        loop.stats.adds += 1
        return serve_add(loop, conn, &request)
    if request.op == OP_READ:
        loop.stats.reads += 1
    else:
        loop.stats.batch_reads += 1
    if request.flags & FLAG_FENCE:
        return serve_fence(loop, conn, &request)
    read_request(loop, conn, &request, &read)
    return serve_read(loop, conn, &read)


cdef Status dispatch_ack(IoLoop* loop, Ack* ack) noexcept nogil:
    cdef V2Request request
    cdef Status status
    if ack.read != NULL:
        status = serve_read(loop, ack.conn, ack.read) if ack.conn.fd >= 0 else OK
        free(ack.read)
        return status
    if ack.conn.fd < 0:
        return OK
    request.op = OP_ADD
    request.version = ack.version
    request.ledger = ack.ledger
    request.entry = ack.entry
    return answer_code(loop, ack.conn, &request, OK)


cdef Status dispatch_read(IoLoop* loop, Conn* conn, PoolJob* job) noexcept nogil:
    if conn.fd < 0:
        answer_release(&job.answer)
        return OK
    return answer_read(loop, conn, &job.request, &job.answer)
