"""Writing answers: a fixed part in front of slices of memory, which go out by copy when short and by reference else."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from bookie._fast.connection cimport conn_reserve, conn_slice
from bookie._fast.cursor cimport store_u32
from bookie._fast.read_path cimport answer_release, region_unpin
from bookie._fast.request cimport BATCH_READ_ENTRY
from bookie._fast.types cimport CLOSED, LENGTH_PREFIX, OK
from bookie._fast.wire_v2 cimport (
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

cdef enum:
    COPY_MOST = 4096             # shorter pieces are copied, longer ones sent from where they lie
    AUTH_VERSION = 2

# AuthMessage{authPluginName "AuthDisabledPlugin", payload ""}
cdef const char* AUTH_DISABLED = b"\x0a\x12AuthDisabledPlugin\x12\x00"
cdef enum:
    AUTH_DISABLED_BYTES = 22


cdef Status write_code(IoLoop* loop, Conn* conn, uint8_t op, uint8_t version, int64_t ledger, int64_t entry,
                       uint64_t request_id, Status status) noexcept nogil:
    cdef uint8_t* out
    if status != OK:
        loop.stats.errors[<int> status] += 1
    if op == BATCH_READ_ENTRY:
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


cdef Status answer_code(IoLoop* loop, Conn* conn, const Request* request, Status status) noexcept nogil:
    return write_code(loop, conn, request.op, request.version, request.ledger, request.entry, request.request_id,
                      status)


cdef Status answer_ack(IoLoop* loop, const Ack* ack) noexcept nogil:
    return write_code(loop, ack.conn, ack.op, ack.version, ack.ledger, ack.entry, ack.request_id, OK)


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
    """One header, then the slices."""
    cdef uint8_t* out
    cdef uint32_t i, payload
    cdef Status status = OK
    if answer.status != OK or answer.count == 0:
        return write_code(loop, conn, request.op, request.version, request.ledger, request.entry, request.request_id,
                          answer.status)
    loop.stats.read_entries += answer.count
    if request.op == BATCH_READ_ENTRY:
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


cdef Status answer_auth(IoLoop* loop, Conn* conn, const Request* request) noexcept nogil:
    cdef uint8_t* out = conn_reserve(conn, FRAME_PREFIX + 4 + AUTH_DISABLED_BYTES)
    if out == NULL:
        return CLOSED
    store_u32(out, 4 + AUTH_DISABLED_BYTES)
    store_u32(out + 4, v2_header(AUTH_VERSION, OP_AUTH, 0))
    memcpy(out + 8, AUTH_DISABLED, AUTH_DISABLED_BYTES)
    return OK
