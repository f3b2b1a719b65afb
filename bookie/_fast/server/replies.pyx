"""Writing responses: a fixed part, then slices of memory, which are copied if they are short, else referred to."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from bookie._fast.base.cursor cimport load_u32, store_u32
from bookie._fast.base.sync cimport bk_add, now_ns
from bookie._fast.base.types cimport CLOSED, END, ENTRY_ID_LAST, LENGTH_PREFIX, NO_ENTRY, NO_LEDGER, OK
from bookie._fast.cache.pages cimport Region
from bookie._fast.server.access_log cimport (
    FROM_CLIENT,
    FROM_DISK,
    FROM_READ_CACHE,
    FROM_WRITE_CACHE,
    NO_LOG_ID,
    AccessRow,
    access_noted,
    access_row,
    access_wanted,
)
from bookie._fast.server.connection cimport conn_affords, conn_reserve, conn_slice
from bookie._fast.server.directory_ops cimport (
    DIRECTORY_LAST,
    DIRECTORY_READ,
    THIS_ROUND,
    DirectoryOps,
    directory_answered,
    directory_op,
)
from bookie._fast.server.loop_ops cimport LOOP_POLL_READ, op_now, op_of, op_since, op_took
from bookie._fast.server.loop_state cimport directory_of
from bookie._fast.server.output cimport flush
from bookie._fast.server.rejections cimport OUT_OF_MEMORY
from bookie._fast.server.stats cimport batch_sized, batch_took
from bookie._fast.store.gather cimport answer_release, region_unpin
from bookie._fast.store.ledger_writes cimport stores_explicit_lac
from bookie._fast.wire.request cimport ADD_ENTRY, BATCH_READ_ENTRY, LONG_POLL, PIGGYBACK, READ_LAC
from bookie._fast.wire.v2 cimport (
    ANSWER_BYTES,
    BATCH_ANSWER_BYTES,
    FRAME_PREFIX,
    OP_AUTH,
    OP_READ,
    v2_answer,
    v2_batch_answer,
    v2_code,
    v2_header,
    v2_opcode,
)
from bookie._fast.wire.v3 cimport V3_VERSION
from bookie._fast.wire.v3_answers cimport (
    V3_ANSWER_MOST,
    V3_ENTRY_MOST,
    V3_ENTRY_SMALL,
    V3_HEAD_MOST,
    V3Tail,
    v3_answer,
    v3_batch_head,
    v3_entries,
    v3_entry_prefix,
    v3_read_head,
    v3_read_lac_head,
    v3_refusal,
    v3_tail,
)

cdef enum:
    COPY_MOST = 4096             # pieces up to this size are copied, larger ones are sent from the cache
    COPY_LEAST = 64              # the same when the output budget is short
    SEND_AT = 1 << 16            # copied batches are sent while they are in the processor's cache
    AUTH_VERSION = 2

# AuthMessage{authPluginName "AuthDisabledPlugin", payload ""}.
cdef const char* AUTH_DISABLED = b"\x0a\x12AuthDisabledPlugin\x12\x00"
# Tag and length of the same as field authResponse of a V3 Response.
cdef const char* AUTH_PART = b"\xb2\x06\x16"
cdef enum:
    AUTH_DISABLED_BYTES = 22
    AUTH_PART_BYTES = 3


cdef inline uint8_t* copied(Conn* conn, const uint8_t* data, uint64_t size) noexcept nogil:
    """Append a copy of `data`, and return where it is; NULL if the connection must be closed."""
    cdef uint8_t* out = conn_reserve(conn, size)
    if out != NULL:
        memcpy(out, data, size)
    return out


cdef Status put(Conn* conn, const uint8_t* data, uint32_t size) noexcept nogil:
    return OK if size == 0 or copied(conn, data, size) != NULL else CLOSED


cdef Status write_code(IoLoop* loop, Conn* conn, uint8_t protocol, uint8_t op, uint8_t version, int64_t ledger,
                       int64_t entry, uint64_t request_id, Status status) noexcept nogil:
    cdef uint8_t frame[V3_ANSWER_MOST]
    cdef uint8_t* out
    cdef uint32_t size
    if status != OK:
        loop.stats.errors[<int> status] += 1
    if protocol == V3_VERSION:
        size = v3_answer(frame, op, request_id, status, ledger, entry)
        if op == BATCH_READ_ENTRY:
            batch_sized(&loop.batches, False, size)
        return put(conn, frame, size)
    if op == BATCH_READ_ENTRY:
        batch_sized(&loop.batches, False, FRAME_PREFIX + BATCH_ANSWER_BYTES)
        out = conn_reserve(conn, FRAME_PREFIX + BATCH_ANSWER_BYTES)
        if out == NULL:
            return CLOSED
        v2_batch_answer(out, version, v2_code(status), ledger, entry, request_id, 0)
        return OK
    out = conn_reserve(conn, FRAME_PREFIX + ANSWER_BYTES)
    if out == NULL:
        return CLOSED
    v2_answer(out, version, v2_opcode(op), v2_code(status), ledger, entry, 0)
    return OK


cdef Status reply_code(IoLoop* loop, Conn* conn, const Request* request, Status status) noexcept nogil:
    if request.op == BATCH_READ_ENTRY:
        batch_took(&loop.batches, False, now_ns() - loop.now)
    op_now(&loop.ops, op_of(request.op, request.flags), status == OK)
    return write_code(loop, conn, request.protocol, request.op, request.version, request.ledger, request.entry,
                      request.request_id, status)


cdef Status reply_refused(IoLoop* loop, Conn* conn, const Request* request, Status status) noexcept nogil:
    cdef uint8_t frame[V3_ANSWER_MOST]
    cdef uint32_t size = v3_refusal(frame, request, status)
    loop.stats.errors[<int> status] += 1
    if request.op == BATCH_READ_ENTRY:
        batch_took(&loop.batches, False, now_ns() - loop.now)
        batch_sized(&loop.batches, False, size)
    return put(conn, frame, size)


cdef void note_add(IoLoop* loop, const Ack* ack) noexcept nogil:
    cdef AccessRow* row = access_row(loop.access)
    if row == NULL:
        return
    row.ledger, row.entry, row.size = ack.ledger, ack.entry, ack.size
    row.op, row.source, row.log_id = ack.op, FROM_CLIENT, NO_LOG_ID
    access_noted(loop.access, row, ack.conn.fd, now_ns() - ack.begun)


cdef void note_read_of(IoLoop* loop, const Conn* conn, const ReadRequest* request, const Answer* answer) noexcept nogil:
    cdef AccessRow* row = access_row(loop.access)
    if row == NULL:
        return
    row.ledger, row.entry = request.ledger, answer.next - answer.count
    row.size = answer.bytes - <uint64_t> answer.count * LENGTH_PREFIX
    row.op, row.source, row.log_id = request.op, FROM_READ_CACHE, NO_LOG_ID
    if answer.from_disk:
        row.source, row.log_id, row.position = FROM_DISK, answer.log_id, answer.position
    elif answer.regions[0].of_write_cache:
        row.source = FROM_WRITE_CACHE
    access_noted(loop.access, row, conn.fd, now_ns() - request.begun)


cdef Status reply_ack(IoLoop* loop, const Ack* ack) noexcept nogil:
    if loop.access != NULL and ack.op == ADD_ENTRY and access_wanted(loop.access):
        note_add(loop, ack)
    return write_code(loop, ack.conn, ack.protocol, ack.op, ack.version, ack.ledger, ack.entry, ack.request_id, OK)


cdef Status put_part(Conn* conn, const uint8_t* base, uint64_t size, Region* region, uint32_t most) noexcept nogil:
    """Append one slice: copied if it has up to `most` bytes, else by reference, which takes over its pin."""
    cdef bint done
    if size > most and conn_slice(conn, base, size, region):
        return OK
    done = copied(conn, base, size) != NULL
    region_unpin(region)
    return OK if done else CLOSED


cdef Status put_stretch(Conn* conn, const uint8_t* base, uint64_t size) noexcept nogil:
    """Append whole records as entries of a V3 batch: one copy, and a word patched for each."""
    cdef uint8_t* out
    if size == 0:
        return OK
    out = copied(conn, base, size)
    if out == NULL:
        return CLOSED
    v3_entries(out, size)
    return OK


cdef Status put_entries(Conn* conn, const uint8_t* base, uint64_t size, Region* region, uint32_t most) noexcept nogil:
    """Append a slice of records as entries of a V3 batch, those above `most` bytes by reference. Takes over one pin.

    Reading the lengths costs a cache miss of the processor for each record, one after the other.
    """
    cdef uint8_t prefix[V3_ENTRY_MOST]
    cdef uint64_t at = 0
    cdef uint64_t start = 0
    cdef uint32_t length
    cdef Status status = OK
    while at < size and status == OK:
        length = load_u32(base + at)
        if length > most:
            status = put_stretch(conn, base + start, at - start)
            if status == OK:
                status = put(conn, prefix, v3_entry_prefix(prefix, length))
            if status == OK:
                bk_add(&region.pins, 1)
                status = put_part(conn, base + at + LENGTH_PREFIX, length, region, most)
            start = at + LENGTH_PREFIX + length
        at += LENGTH_PREFIX + <uint64_t> length
    if status == OK:
        status = put_stretch(conn, base + start, size - start)
    region_unpin(region)
    return status


cdef uint32_t longer_prefixes(const Answer* answer) noexcept nogil:
    """Return how many more bytes the prefixes of a V3 batch take than the length words of its records."""
    cdef uint8_t prefix[V3_ENTRY_MOST]
    cdef uint32_t extra = 0
    cdef uint32_t i, length
    cdef uint64_t at
    for i in range(answer.slices):
        at = 0
        while answer.parts[i].size > V3_ENTRY_SMALL and at < answer.parts[i].size:
            length = load_u32(answer.parts[i].base + at)
            extra += v3_entry_prefix(prefix, length) - LENGTH_PREFIX
            at += LENGTH_PREFIX + <uint64_t> length
    return extra


cdef void drop_parts(Answer* answer, uint32_t first) noexcept nogil:
    cdef uint32_t i
    for i in range(first, answer.slices):
        region_unpin(answer.regions[i])
    answer.slices = 0


cdef Status copy_entries(Conn* conn, const uint8_t* base, uint64_t size, Region* region) noexcept nogil:
    """Append a slice of records, all below V3_ENTRY_SMALL, as entries of a V3 batch. Takes over one pin."""
    cdef Status status = put_stretch(conn, base, size)
    region_unpin(region)
    return status


cdef Status write_batch(Conn* conn, const ReadRequest* request, Answer* answer, const V3Tail* tail) noexcept nogil:
    cdef uint8_t head[V3_HEAD_MOST]
    cdef uint32_t longer = longer_prefixes(answer)
    cdef uint32_t payload = <uint32_t> answer.bytes + longer
    cdef uint32_t most = COPY_MOST if conn_affords(conn, answer.bytes) else COPY_LEAST
    cdef bint copied = longer == 0 and answer.bytes <= <uint64_t> answer.count * most
    cdef uint32_t i
    cdef uint32_t size = v3_batch_head(head, request.request_id, request.ledger, request.entry, payload, tail)
    cdef Status status = put(conn, head, size)
    batch_sized(&(<IoLoop*> conn.loop).batches, True, <int64_t> size + payload + tail.size)
    for i in range(answer.slices):
        if status != OK:
            drop_parts(answer, i)
            return status
        if copied:
            status = copy_entries(conn, answer.parts[i].base, answer.parts[i].size, answer.regions[i])
        else:
            status = put_entries(conn, answer.parts[i].base, answer.parts[i].size, answer.regions[i], most)
    answer.slices = 0
    if status == OK and tail.size:
        status = put(conn, tail.bytes, tail.size)
    if status == OK and conn.out_used >= SEND_AT and flush(<IoLoop*> conn.loop, conn) == CLOSED:
        return CLOSED
    return status


cdef Status write_single(Conn* conn, const ReadRequest* request, Answer* answer, const V3Tail* tail) noexcept nogil:
    """Write a V3 read with its entry; the response to a long poll has the id of that entry."""
    cdef uint8_t head[V3_HEAD_MOST]
    cdef const uint8_t* body = answer.parts[0].base + LENGTH_PREFIX
    cdef uint32_t size = <uint32_t> answer.parts[0].size - LENGTH_PREFIX
    cdef uint32_t head_size = v3_read_head(head, request.request_id, request.ledger, request.entry, True, size, tail)
    cdef uint8_t* out
    cdef Status status
    answer.slices = 0
    if size > COPY_MOST:
        status = put(conn, head, head_size)
        if status != OK:
            region_unpin(answer.regions[0])
            return status
        status = put_part(conn, body, size, answer.regions[0], COPY_MOST)
        return put(conn, tail.bytes, tail.size) if status == OK else status
    out = conn_reserve(conn, head_size + size + tail.size)
    if out != NULL:
        memcpy(out, head, head_size)
        memcpy(out + head_size, body, size)
        memcpy(out + head_size + size, tail.bytes, tail.size)
    region_unpin(answer.regions[0])
    return OK if out != NULL else CLOSED


cdef void note_time(IoLoop* loop, const ReadRequest* request, bint success, const Answer* found) noexcept nogil:
    """Record the duration of a read; `found` is its answer if that has entries, else NULL."""
    cdef DirectoryOps* directory = directory_of(loop, request.ledger)
    cdef int64_t now
    cdef int64_t size
    cdef int64_t took = THIS_ROUND
    if request.flags & LONG_POLL:
        op_since(&loop.ops, LOOP_POLL_READ, success, request.phase_ns, loop.now)
    if request.op == BATCH_READ_ENTRY:
        now = now_ns()
        took = now - request.phase_ns    # without a wait for the LAC or a fence
        batch_took(&loop.batches, success, took)
        took -= request.queued_ns
        op_took(&loop.ops, op_of(request.op, request.flags), success, now - request.begun)
    else:
        op_since(&loop.ops, op_of(request.op, request.flags), success, request.begun, loop.now)
        if request.phase_ns != loop.now:
            took = now_ns() - request.phase_ns - request.queued_ns
    directory_op(directory, DIRECTORY_READ, success, took)
    if request.entry == ENTRY_ID_LAST:
        directory_op(directory, DIRECTORY_LAST, success, took)
    if found != NULL:
        size = <int64_t> found.bytes - <int64_t> found.count * LENGTH_PREFIX
        loop.stats.read_bytes += size
        directory_answered(directory, found.count, size)


cdef Status write_lac_head(Conn* conn, const ReadRequest* request, Status status, bint has_entry,
                           uint32_t entry_size) noexcept nogil:
    cdef IoLoop* loop = <IoLoop*> conn.loop
    cdef uint32_t lac_size = 0
    cdef uint8_t* lac = stores_explicit_lac(loop.stores, request.ledger, &lac_size)
    cdef uint8_t* head = <uint8_t*> malloc(V3_HEAD_MOST + lac_size)
    cdef Status written = CLOSED
    if lac != NULL and (status == NO_ENTRY or status == NO_LEDGER):
        status = OK
    elif status == NO_LEDGER:
        status = NO_ENTRY
    if status != OK:
        loop.stats.errors[<int> status] += 1
    note_time(loop, request, status == OK, NULL)
    if head == NULL:
        conn.why = OUT_OF_MEMORY
    else:
        written = put(conn, head, v3_read_lac_head(head, request.request_id, status, request.ledger, lac, lac_size,
                                                   has_entry, entry_size))
    free(head)
    free(lac)
    return written


cdef Status write_read_lac(Conn* conn, const ReadRequest* request, Answer* answer) noexcept nogil:
    """Write the explicit LAC packet and the last entry, as far as they exist. If neither does, ENOENTRY, also for an
    unknown ledger; but an unreadable entry is never reported as absent.
    """
    cdef Status status
    if answer.status != OK or answer.count == 0:
        return write_lac_head(conn, request, answer.status, False, 0)
    status = write_lac_head(conn, request, OK, True, <uint32_t> answer.parts[0].size - LENGTH_PREFIX)
    answer.slices = 0
    if status != OK:
        region_unpin(answer.regions[0])
        return status
    return put_part(conn, answer.parts[0].base + LENGTH_PREFIX, answer.parts[0].size - LENGTH_PREFIX, answer.regions[0],
                    COPY_MOST)


cdef Status write_nothing_new(Conn* conn, const ReadRequest* request, const V3Tail* tail) noexcept nogil:
    """Write the response to a long poll without an entry: only the LAC."""
    cdef uint8_t head[V3_HEAD_MOST]
    cdef uint32_t size
    cdef Status status
    if request.op == BATCH_READ_ENTRY:
        size = v3_batch_head(head, request.request_id, request.ledger, ENTRY_ID_LAST, 0, tail)
        batch_sized(&(<IoLoop*> conn.loop).batches, True, size + tail.size)
    else:
        size = v3_read_head(head, request.request_id, request.ledger, ENTRY_ID_LAST, False, 0, tail)
    status = put(conn, head, size)
    return put(conn, tail.bytes, tail.size) if status == OK else status


cdef Status answer_read_v3(IoLoop* loop, Conn* conn, const ReadRequest* request, Answer* answer) noexcept nogil:
    cdef V3Tail tail
    cdef bint polled = request.flags & PIGGYBACK and answer.has_lac
    if request.op == READ_LAC:
        return write_read_lac(conn, request, answer)
    v3_tail(&tail, answer.has_lac, answer.lac, polled and request.lac_time_ms != 0, request.lac_time_ms)
    if answer.status == END and polled:
        return write_nothing_new(conn, request, &tail)
    if answer.status != OK or answer.count == 0:
        loop.stats.polled_absent += polled and answer.status == NO_ENTRY
        return write_code(loop, conn, request.protocol, request.op, request.version, request.ledger,
                          ENTRY_ID_LAST if request.flags & PIGGYBACK else request.entry, request.request_id,
                          answer.status)
    loop.stats.read_entries += answer.count
    if request.op == BATCH_READ_ENTRY:
        return write_batch(conn, request, answer, &tail)
    return write_single(conn, request, answer, &tail)


cdef Status reply_read(IoLoop* loop, Conn* conn, const ReadRequest* request, Answer* answer) noexcept nogil:
    """Write the header, then the slices."""
    cdef uint8_t* out
    cdef uint32_t i, payload
    cdef bint found = answer.status == OK and answer.count
    cdef bint nothing_new = answer.status == END and request.flags & PIGGYBACK and answer.has_lac
    cdef Status status = OK
    if request.op != READ_LAC:
        note_time(loop, request, found or nothing_new, answer if found else NULL)
    if loop.access != NULL and found and access_wanted(loop.access):
        note_read_of(loop, conn, request, answer)
    if request.protocol == V3_VERSION:
        return answer_read_v3(loop, conn, request, answer)
    if answer.status != OK or answer.count == 0:
        return write_code(loop, conn, request.protocol, request.op, request.version, request.ledger, request.entry,
                          request.request_id, answer.status)
    loop.stats.read_entries += answer.count
    if request.op == BATCH_READ_ENTRY:
        payload = <uint32_t> answer.bytes
        batch_sized(&loop.batches, True, <int64_t> FRAME_PREFIX + BATCH_ANSWER_BYTES + payload)
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
        if status != OK:
            drop_parts(answer, i)
            break
        status = put_part(conn, answer.parts[i].base, answer.parts[i].size, answer.regions[i], COPY_MOST)
    answer.slices = 0
    return status


cdef Status reply_auth(IoLoop* loop, Conn* conn, const Request* request) noexcept nogil:
    cdef uint8_t frame[V3_ANSWER_MOST + AUTH_PART_BYTES + AUTH_DISABLED_BYTES]
    cdef uint32_t size = FRAME_PREFIX + 4
    if request.protocol == V3_VERSION:
        size = v3_refusal(frame, request, OK)
        memcpy(frame + size, AUTH_PART, AUTH_PART_BYTES)
        size += AUTH_PART_BYTES
    else:
        store_u32(frame + FRAME_PREFIX, v2_header(AUTH_VERSION, OP_AUTH, 0))
    memcpy(frame + size, AUTH_DISABLED, AUTH_DISABLED_BYTES)
    size += AUTH_DISABLED_BYTES
    store_u32(frame, size - FRAME_PREFIX)
    return put(conn, frame, size)
