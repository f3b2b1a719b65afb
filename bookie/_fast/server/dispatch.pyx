"""Requests in, responses out: this module decides, the modules below it do the work."""
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from bookie._fast.base.bounds cimport ENTRY_ID_MAX
from bookie._fast.base.cursor cimport load_i64
from bookie._fast.base.planted cimport (
    PLANT_FENCE_ANSWERED_EARLY,
    PLANT_FORCE_EARLY,
    PLANT_PATIENCE_ENDLESS,
    bk_planted,
)
from bookie._fast.base.sync cimport bk_load, now_ns
from bookie._fast.base.types cimport (
    BAD_REQUEST,
    BAD_VERSION,
    CLOSED,
    CORRUPT,
    ENTRY_HEADER_MIN,
    ENTRY_ID_LAST,
    ENTRY_LAC_MIN,
    FULL,
    NEED_MORE,
    OK,
    PENDING,
    READ_ONLY,
    TOO_MANY_REQUESTS,
    UNAUTHORIZED,
)
from bookie._fast.journal.commit cimport journal_has_room, journal_last_group
from bookie._fast.journal.state cimport Journal
from bookie._fast.server.acks cimport ack_later
from bookie._fast.server.admission cimport admission, urgent_begins, urgent_ends
from bookie._fast.server.connection cimport conn_awaited, conn_awaits, conn_room, conn_trim
from bookie._fast.server.directory_ops cimport (
    DIRECTORY_ADD,
    DIRECTORY_BLOCKED,
    THIS_ROUND,
    DirectoryOps,
    directory_added,
    directory_op,
)
from bookie._fast.server.gate cimport gate_admit, gate_submit
from bookie._fast.server.limits cimport AUTH_WAITING
from bookie._fast.server.long_polls cimport polls_wait
from bookie._fast.server.loop_ops cimport LOOP_FENCE_WAIT, LOOP_POLL_PRE_WAIT, LOOP_POLL_WAIT, op_now, op_since, op_took
from bookie._fast.server.loop_state cimport directory_of
from bookie._fast.server.output cimport flush
from bookie._fast.server.rejections cimport OUT_OF_MEMORY
from bookie._fast.server.replies cimport reply_ack, reply_auth, reply_code, reply_read, reply_refused
from bookie._fast.server.upgrade cimport start_tls
from bookie._fast.server.users cimport MAY_ALL
from bookie._fast.store.gather cimport (
    COUNT_MOST,
    Answer,
    ReadRequest,
    answer_begin,
    answer_from_memory,
    answer_release,
)
from bookie._fast.store.ledger_writes cimport (
    ADD_PLAIN,
    ADD_RECOVERY,
    stores_add,
    stores_fence,
    stores_write_close,
    stores_write_lac,
)
from bookie._fast.store.read_pool cimport line_number, pool_read_ahead, pool_submit
from bookie._fast.store.read_queue cimport ReadQueue
from bookie._fast.store.storage cimport store_request_room
from bookie._fast.store.stores cimport STORES_MOST, Store, journal_of, store_of
from bookie._fast.wire.request cimport (
    ADD_ENTRY,
    AUTH,
    BATCH_READ_ENTRY,
    DEFERRED_SYNC,
    FENCE,
    FORCE_LEDGER,
    GET_BOOKIE_INFO,
    GET_LIST_OF_ENTRIES_OF_LEDGER,
    HIGH_PRIORITY,
    LONG_POLL,
    PIGGYBACK,
    READ_ENTRY,
    READ_LAC,
    RECOVERY_ADD,
    START_TLS,
    TIMED,
    WRITE_CLOSE,
    WRITE_LAC,
    Request,
)
from bookie._fast.wire.v2 cimport BATCH_ANSWER_BYTES, FRAME_PREFIX, v2_parse, v2_version_ok
from bookie._fast.wire.v3 cimport V3_FIRST_BYTE, V3_VERSION, v3_parse

cdef enum:
    V3_BATCH_FIXED = 64          # bytes of a V3 batch response besides its entries, and those for each entry
    V3_BATCH_ENTRY = 6


cdef Status submit(IoLoop* loop, Conn* conn, const ReadRequest* request, Answer* answer) noexcept nogil:
    """Submit a read to the read pool; `answer` is used if that is refused."""
    cdef Status status = TOO_MANY_REQUESTS
    cdef uint32_t at = line_number(loop.pool, request.ledger)
    if conn.read_queues == NULL:
        conn.read_queues = <ReadQueue*> calloc(loop.stores.count, sizeof(ReadQueue))
    if conn.read_queues != NULL:
        status = pool_submit(loop.pool, request, &conn.read_queues[at], &loop.inbox)
    if status == OK:
        conn.refs += 1
        conn_awaits(conn, request)
        urgent_begins(conn, request.flags)
        return OK
    answer_begin(answer, request)
    answer.status = status
    return reply_read(loop, conn, request, answer)


cdef Status serve_read(IoLoop* loop, Conn* conn, const ReadRequest* request) noexcept nogil:
    """Serve a read from memory here, or by the read pool. Reading ahead comes after the response, most of which is
    copied by then, because the ring does not reuse pages to which an answer refers.
    """
    cdef Answer answer
    cdef Status status
    answer_begin(&answer, request)
    answer_from_memory(loop.stores, request, &answer)
    if answer.status == PENDING:
        answer_release(&answer)
        pool_read_ahead(loop.pool, request.ledger, &answer)
        return submit(loop, conn, request, &answer)
    status = reply_read(loop, conn, request, &answer)
    pool_read_ahead(loop.pool, request.ledger, &answer)
    return status


cdef void batch_limits(const IoLoop* loop, const Conn* conn, const Request* request,
                       ReadRequest* read) noexcept nogil:
    """Set the limits of a batch: the count, and the bytes of records besides the frame's other contents. They are
    lower while much unsent output waits for slow peers; the client then has to request the rest.
    """
    cdef int64_t limit = request.size_max
    cdef int64_t fixed = FRAME_PREFIX + BATCH_ANSWER_BYTES
    read.count = request.count_max if request.count_max > 0 else COUNT_MOST
    if request.protocol == V3_VERSION:
        fixed = V3_BATCH_FIXED
        read.per_entry = V3_BATCH_ENTRY - FRAME_PREFIX
    if limit > <int64_t> loop.limits.batch_bytes_max:
        limit = <int64_t> loop.limits.batch_bytes_max
    if limit > <int64_t> loop.limits.frame_bytes_max:
        limit = <int64_t> loop.limits.frame_bytes_max
    if limit > <int64_t> conn_room(conn):
        limit = <int64_t> conn_room(conn)
    if limit > fixed:
        read.bytes = <uint64_t> (limit - fixed)
    else:
        read.count = 1


cdef void read_request(IoLoop* loop, Conn* conn, const Request* request, ReadRequest* read) noexcept nogil:
    read.ledger = request.ledger
    read.entry = request.entry
    read.request_id = request.request_id
    read.flags = request.flags
    read.protocol = request.protocol
    read.op = request.op
    read.version = request.version
    read.wants_lac = False
    read.learns = False
    read.owner = conn
    read.count = 1
    read.per_entry = 0
    read.bytes = 0
    read.lac_time_ms = 0
    read.begun = loop.now
    read.phase_ns = loop.now
    read.queued_ns = 0
    if request.flags & FENCE or not request.flags & LONG_POLL:
        read.flags &= ~<uint32_t> (PIGGYBACK | LONG_POLL | TIMED)
    elif request.flags & PIGGYBACK:
        # The entry that a long poll waits for; after the highest id there is none.
        read.entry = min(max(request.previous_lac, <int64_t> -1), ENTRY_ID_MAX) + 1
    if request.op == BATCH_READ_ENTRY and read.entry != ENTRY_ID_LAST:
        batch_limits(loop, conn, request, read)
    if request.protocol != V3_VERSION:
        return
    read.wants_lac = request.op != READ_LAC and not request.flags & FENCE
    read.previous_lac = request.previous_lac
    read.timeout_ms = request.timeout_ms


cdef bint out_of_patience(IoLoop* loop, Conn* conn) noexcept nogil:
    """Handle a lack of room: return True if the bounded wait is over; else the request waits at the head of input."""
    cdef int64_t now = now_ns()
    if conn.stalled_until == 0:
        conn.stalled_until = now + loop.limits.throttle_ms_max * 1000000
        loop.stalled += 1
        loop.stats.stalls += 1
        return False
    if now < conn.stalled_until or bk_planted(PLANT_PATIENCE_ENDLESS):
        return False
    loop.stats.stalls_refused += 1
    return True


cdef bint has_long_been_full(IoLoop* loop, uint64_t at) noexcept nogil:
    """Note that a request found no room. Return whether requests have tried in vain, in this directory or journal, for
    as long as one may wait: then it need not wait either, and what follows it on its connection, for others, neither.
    """
    cdef int64_t most = loop.limits.throttle_ms_max * 1000000
    loop.full_count += loop.full_since[at] == 0
    if loop.full_since[at] == 0 or loop.now - loop.full_seen[at] > most:
        loop.full_since[at] = loop.now           # a pause without adds says nothing
    loop.full_seen[at] = loop.now
    return loop.now - loop.full_since[at] > most and not bk_planted(PLANT_PATIENCE_ENDLESS)


cdef uint64_t journal_number(const IoLoop* loop, int64_t ledger) noexcept nogil:
    return STORES_MOST + <uint64_t> ledger % loop.stores.journal_count


cdef bint waits_for_journal(IoLoop* loop, Conn* conn, int64_t ledger) noexcept nogil:
    """Handle a journal without room: return whether the request waits for it at the head of its connection's input."""
    if has_long_been_full(loop, journal_number(loop, ledger)):
        loop.stats.stalls_refused += 1
        return False
    return not out_of_patience(loop, conn)


cdef bint waits_for_room(IoLoop* loop, Conn* conn, int64_t ledger, uint32_t size, Status status) noexcept nogil:
    """The same for an add, which needs room in its journal, and in the write cache of its directory: FULL, or
    TOO_MANY_REQUESTS if only this ledger has none.
    """
    if loop.stores.write_data and not journal_has_room(journal_of(loop.stores, ledger), size):
        return waits_for_journal(loop, conn, ledger)
    store_request_room(loop.stores, store_of(loop.stores, ledger))               # a flush gives a journal none
    if status == FULL and has_long_been_full(loop, <uint64_t> ledger % loop.stores.count):
        loop.stats.stalls_refused += 1
        return False
    return not out_of_patience(loop, conn)


cdef void had_room(IoLoop* loop, uint64_t at) noexcept nogil:
    loop.full_count -= loop.full_since[at] != 0
    loop.full_since[at] = 0


cdef inline void found_room(IoLoop* loop, int64_t ledger) noexcept nogil:
    if loop.full_count:
        had_room(loop, <uint64_t> ledger % loop.stores.count)
        had_room(loop, journal_number(loop, ledger))


cdef bint takes_writes(const IoLoop* loop, const Request* request, int64_t ledger) noexcept nogil:
    """Return whether the bookie is writable for this request; recovery adds may pass where others may not."""
    cdef Store* store = store_of(loop.stores, ledger)
    cdef const Journal* journal = journal_of(loop.stores, ledger)
    if bk_load(&journal.full) or bk_load(&journal.backlog.at_limit) or bk_load(&store.no_space):
        return False
    if not bk_load(&loop.stores.read_only) and not bk_load(&store.held):
        return True
    return request.op == ADD_ENTRY and request.flags & HIGH_PRIORITY and bk_load(&loop.stores.high_priority_ok)


cdef Status refuse_add(IoLoop* loop, Conn* conn, const Request* request, int64_t ledger, Status status) noexcept nogil:
    """Refuse an add. The writer continues without this bookie, so the ledger's log need not stay open for it."""
    stores_write_close(loop.stores, ledger, request.key, request.key_size)
    return reply_code(loop, conn, request, status)


cdef void note_add(IoLoop* loop, const Conn* conn, int64_t ledger, Status status, int64_t size) noexcept nogil:
    """Record that the storage took or refused an add."""
    cdef DirectoryOps* directory = directory_of(loop, ledger)
    cdef int64_t took = THIS_ROUND
    if conn.stalled_until and conn.stalled_until != INT64_MAX:
        took = loop.now - conn.stalled_until + loop.limits.throttle_ms_max * 1000000
        directory_op(directory, DIRECTORY_BLOCKED, status == OK, took)
    directory_op(directory, DIRECTORY_ADD, status == OK, took)
    if status == OK:
        directory_added(directory, size)


cdef Status serve_add(IoLoop* loop, Conn* conn, const Request* request) noexcept nogil:
    """Store an entry under the ids in it; the response has those of the request."""
    cdef int64_t group = 0
    cdef int64_t ledger
    cdef bint deferred = request.flags & DEFERRED_SYNC and not request.flags & RECOVERY_ADD
    cdef Status status
    if request.body_size < ENTRY_LAC_MIN:
        return reply_code(loop, conn, request, BAD_REQUEST)
    ledger = load_i64(request.body)
    if not takes_writes(loop, request, ledger):
        return refuse_add(loop, conn, request, ledger, READ_ONLY)
    status = stores_add(loop.stores, ledger, load_i64(request.body + 8), request.key, request.key_size, request.body,
                        request.body_size, ADD_RECOVERY if request.flags & RECOVERY_ADD else ADD_PLAIN, &group)
    if status == FULL or status == TOO_MANY_REQUESTS:
        if waits_for_room(loop, conn, ledger, request.body_size, status):
            return FULL
        status = TOO_MANY_REQUESTS
    elif status == OK:
        found_room(loop, ledger)
    note_add(loop, conn, ledger, status, request.body_size)
    if status == OK and group:
        loop.stats.deferred_adds += deferred
        if ack_later(loop, conn, request, ledger, group, NULL, deferred):
            return OK
        return CLOSED
    if status != OK:
        return refuse_add(loop, conn, request, ledger, status)
    return reply_code(loop, conn, request, OK)


cdef Status serve_write_lac(IoLoop* loop, Conn* conn, const Request* request) noexcept nogil:
    """Store an explicit LAC under the ledger id in its packet."""
    cdef int64_t group = 0
    cdef int64_t ledger
    cdef Status status
    loop.stats.write_lacs += 1
    if request.body_size < ENTRY_HEADER_MIN:
        return reply_code(loop, conn, request, BAD_REQUEST)
    ledger = load_i64(request.body)
    if not takes_writes(loop, request, ledger):
        return reply_code(loop, conn, request, READ_ONLY)
    status = stores_write_lac(loop.stores, ledger, request.key, request.key_size, request.body, request.body_size,
                              &group)
    if status == FULL:
        if waits_for_journal(loop, conn, ledger):
            return FULL
        status = TOO_MANY_REQUESTS
    if status != OK:
        return reply_code(loop, conn, request, status)
    return OK if ack_later(loop, conn, request, ledger, group, NULL, False) else CLOSED


cdef Status serve_force(IoLoop* loop, Conn* conn, const Request* request) noexcept nogil:
    """Answer when everything that the ledger's journal took so far is on disk."""
    cdef Journal* journal = journal_of(loop.stores, request.ledger)
    cdef int64_t group = journal_last_group(journal)
    loop.stats.forces += 1
    if bk_load(&journal.synced_group) >= group or bk_planted(PLANT_FORCE_EARLY):
        return reply_code(loop, conn, request, OK)
    return OK if ack_later(loop, conn, request, request.ledger, group, NULL, False) else CLOSED


cdef Status serve_fence(IoLoop* loop, Conn* conn, const Request* request) noexcept nogil:
    """Fence first; the read is answered when the fence record is on disk."""
    cdef int64_t group = 0
    cdef int64_t at
    cdef ReadRequest* read
    cdef Status status
    loop.stats.fences += 1
    if request.key == NULL:
        return reply_code(loop, conn, request, UNAUTHORIZED)
    status = stores_fence(loop.stores, request.ledger, request.key, request.key_size, &group)
    if status == FULL:
        if waits_for_journal(loop, conn, request.ledger):
            return FULL
        status = TOO_MANY_REQUESTS
    if status != OK:
        return reply_code(loop, conn, request, status)
    read = <ReadRequest*> malloc(sizeof(ReadRequest))
    if read == NULL:
        conn.why = OUT_OF_MEMORY
        return CLOSED
    read_request(loop, conn, request, read)
    at = <int64_t> (<uint64_t> request.ledger % loop.stores.journal_count)
    if group == 0 or bk_load(&loop.stores.journals[at].synced_group) >= group or bk_planted(PLANT_FENCE_ANSWERED_EARLY):
        op_now(&loop.ops, LOOP_FENCE_WAIT, True)
        status = serve_read(loop, conn, read)
        free(read)
        return status
    if ack_later(loop, conn, request, request.ledger, group, read, False):
        return OK
    free(read)
    return CLOSED


cdef Status serve_poll(IoLoop* loop, Conn* conn, ReadRequest* read) noexcept nogil:
    """Serve a read that may have to wait for a LAC above the one that it names; `dispatch_poll` continues."""
    cdef Answer answer
    cdef Status status = OK
    read.phase_ns = loop.now
    if read.flags & TIMED:
        status = polls_wait(&loop.polls, &conn.polls, read, read.previous_lac, read.timeout_ms, loop.now)
        if status == OK or status == PENDING:
            op_since(&loop.ops, LOOP_POLL_PRE_WAIT, True, read.begun, loop.now)
    if status == OK:
        return serve_read(loop, conn, read)
    if status == PENDING:
        conn.refs += 1
        conn_trim(conn)          # it may be quiet for long
        return OK
    if status == NEED_MORE:
        read.learns = True
        return submit(loop, conn, read, &answer)
    answer_begin(&answer, read)
    answer.status = status
    return reply_read(loop, conn, read, &answer)


cdef Status serve_reading(IoLoop* loop, Conn* conn, const Request* request) noexcept nogil:
    cdef ReadRequest read
    if request.flags & FENCE:
        return serve_fence(loop, conn, request)
    if request.flags & PIGGYBACK:
        if request.flags & LONG_POLL:
            if request.entry != ENTRY_ID_LAST:
                return reply_code(loop, conn, request, BAD_REQUEST)
        elif request.op == BATCH_READ_ENTRY:     # in a single read it is ignored, as in Apache BookKeeper
            return reply_code(loop, conn, request, BAD_REQUEST)
    read_request(loop, conn, request, &read)
    if read.flags & LONG_POLL:
        return serve_poll(loop, conn, &read)
    return serve_read(loop, conn, &read)


cdef Status serve_read_lac(IoLoop* loop, Conn* conn, const Request* request) noexcept nogil:
    cdef ReadRequest read
    loop.stats.read_lacs += 1
    read_request(loop, conn, request, &read)
    read.entry = ENTRY_ID_LAST
    return serve_read(loop, conn, &read)


cdef Status serve(IoLoop* loop, Conn* conn, Request* request) noexcept nogil:
    """The switch on the operation."""
    if admission(loop, conn, request) != OK:
        if request.op == ADD_ENTRY and request.body_size >= ENTRY_LAC_MIN:
            return refuse_add(loop, conn, request, load_i64(request.body), TOO_MANY_REQUESTS)
        return reply_code(loop, conn, request, TOO_MANY_REQUESTS)
    if request.op == ADD_ENTRY:
        loop.stats.adds += 1
        return serve_add(loop, conn, request)
    if request.op == READ_ENTRY:
        loop.stats.reads += 1
        return serve_reading(loop, conn, request)
    if request.op == BATCH_READ_ENTRY:
        loop.stats.batch_reads += 1
        return serve_reading(loop, conn, request)
    if request.op == WRITE_LAC:
        return serve_write_lac(loop, conn, request)
    if request.op == READ_LAC:
        return serve_read_lac(loop, conn, request)
    if request.op == FORCE_LEDGER:
        return serve_force(loop, conn, request)
    if request.op == WRITE_CLOSE:
        loop.stats.write_closes += 1
        return reply_code(loop, conn, request,
                          stores_write_close(loop.stores, request.ledger, request.key, request.key_size))
    return reply_refused(loop, conn, request, BAD_REQUEST)


cdef Status parse(IoLoop* loop, Conn* conn, const uint8_t* frame, uint32_t size, Request* request) noexcept nogil:
    """Parse the frame. One that is not a V3 message is V2, and so are all further frames of the connection."""
    cdef Status status
    if not conn.v2_only:
        if size and frame[0] >= V3_FIRST_BYTE:
            status = v3_parse(frame, size, conn.limits.nesting_max, request)
            if status != CORRUPT:
                return status
            loop.stats.unreadable_v3 += 1
        conn.v2_only = True
    return v2_parse(frame, size, request)


cdef Status admit(IoLoop* loop, Conn* conn, const Request* request, Status parsed, const uint8_t* frame,
                  uint32_t size) noexcept nogil:
    """Pass the request through the gate. OK: serve it. PENDING: it was dealt with. CLOSED: close the connection."""
    cdef Status status = gate_admit(loop, conn, request, parsed == OK, frame, size)
    if status == OK or status == PENDING or status == CLOSED:
        return status
    if request.protocol == V3_VERSION and conn.login.state == AUTH_WAITING:
        status = reply_refused(loop, conn, request, status)
    else:
        status = reply_code(loop, conn, request, status)
    if status == OK and conn.why:
        flush(loop, conn)
        status = CLOSED
    return PENDING if status == OK else CLOSED


cdef Status by_policy(IoLoop* loop, Conn* conn, const Request* request, const uint8_t* frame,
                      uint32_t size) noexcept nogil:
    """Pass a request to Python."""
    cdef Status status
    if loop.policy == NULL:
        return reply_refused(loop, conn, request, BAD_REQUEST)
    status = gate_submit(loop, conn, request, frame, size)
    return OK if status == OK else reply_code(loop, conn, request, status)


cdef Status serve_start_tls(IoLoop* loop, Conn* conn, const Request* request) noexcept nogil:
    cdef Status status = start_tls(loop, conn)
    if status == CLOSED:
        return CLOSED
    if status == OK:
        return reply_code(loop, conn, request, OK)
    return reply_refused(loop, conn, request, status)


cdef Status dispatch(IoLoop* loop, Conn* conn, const uint8_t* frame, uint32_t size) noexcept nogil:
    cdef Request request
    cdef Status admitted
    cdef Status status = parse(loop, conn, frame, size, &request)
    if status == CLOSED:
        return CLOSED
    if conn.login.may != MAY_ALL:
        admitted = admit(loop, conn, &request, status, frame, size)
        if admitted != OK:
            return CLOSED if admitted == CLOSED else OK
    if request.protocol == V3_VERSION and status != OK:
        return reply_refused(loop, conn, &request, BAD_REQUEST)
    if request.op == AUTH:
        loop.stats.auths += 1
        return reply_auth(loop, conn, &request)
    if request.op == START_TLS:
        return serve_start_tls(loop, conn, &request)
    if request.op == GET_BOOKIE_INFO or request.op == GET_LIST_OF_ENTRIES_OF_LEDGER:
        return by_policy(loop, conn, &request, frame, size)
    if request.version != V3_VERSION if request.protocol == V3_VERSION else not v2_version_ok(request.version):
        return reply_code(loop, conn, &request, BAD_VERSION)
    if status != OK:
        return reply_code(loop, conn, &request, BAD_REQUEST)
    return serve(loop, conn, &request)


cdef Status dispatch_ack(IoLoop* loop, Ack* ack) noexcept nogil:
    cdef Status status
    urgent_ends(ack.conn, ack.flags)
    if ack.read != NULL:
        ack.read.phase_ns = loop.now
        status = serve_read(loop, ack.conn, ack.read) if ack.conn.fd >= 0 else OK
        free(ack.read)
        return status
    if ack.conn.fd < 0:
        return OK
    return reply_ack(loop, ack)


cdef Status dispatch_read(IoLoop* loop, Conn* conn, PoolJob* job) noexcept nogil:
    conn_awaited(conn, &job.request, &job.answer)
    urgent_ends(conn, job.request.flags)
    if conn.fd < 0:
        answer_release(&job.answer)
        return OK
    if job.request.learns and job.answer.status == OK:
        job.request.learns = False
        job.request.queued_ns = 0
        return serve_poll(loop, conn, &job.request)
    return reply_read(loop, conn, &job.request, &job.answer)


cdef Status dispatch_poll(IoLoop* loop, Conn* conn, const Poll* poll) noexcept nogil:
    cdef ReadRequest read = poll.request
    if conn.fd < 0:
        return OK
    op_took(&loop.ops, LOOP_POLL_WAIT, not poll.expired, loop.now - read.phase_ns)
    read.phase_ns = loop.now
    read.lac_time_ms = poll.lac_time_ms
    return serve_read(loop, conn, &read)
