"""V3 responses, written directly in the protobuf library's order of fields. Any thread; callers own all memory."""
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from bookie._fast.base.cursor cimport load_u32, store_u32
from bookie._fast.base.types cimport LENGTH_PREFIX, OK
from bookie._fast.wire.proto cimport WIRE_BYTES, varint_bytes, write_number, write_padded, write_varint
from bookie._fast.wire.request cimport (
    ADD_ENTRY,
    AUTH,
    BATCH_READ_ENTRY,
    GET_BOOKIE_INFO,
    READ_ENTRY,
    READ_LAC,
    START_TLS,
)
from bookie._fast.wire.v3 cimport V3_HEADER_FIELD, V3_VERSION, v3_code, v3_field

cdef enum:
    STATUS_FIELD = 2


cdef uint8_t* write_start(uint8_t* out, uint8_t version, uint8_t op, uint64_t txn, uint32_t priority,
                          Status status) noexcept nogil:
    """Write the header and the status of a response; `close_frame` fills in the length word in front of them."""
    cdef uint8_t* header = out + LENGTH_PREFIX + 2
    cdef uint8_t* end = write_number(header, 1, version)
    end = write_number(end, 2, op)
    end = write_number(end, 3, <int64_t> txn)
    if priority:
        end = write_number(end, 4, priority)
    out[LENGTH_PREFIX] = (V3_HEADER_FIELD << 3) | WIRE_BYTES
    out[LENGTH_PREFIX + 1] = <uint8_t> (end - header)
    return write_number(end, STATUS_FIELD, v3_code(status))


cdef uint8_t* write_part(uint8_t* at, uint8_t op, uint32_t size) noexcept nogil:
    at = write_varint(at, (v3_field(op) << 3) | WIRE_BYTES)
    return write_varint(at, size)


cdef uint32_t close_frame(uint8_t* out, const uint8_t* end, uint32_t following) noexcept nogil:
    store_u32(out, <uint32_t> (end - out - LENGTH_PREFIX) + following)
    return <uint32_t> (end - out)


cdef inline uint32_t number_bytes(int64_t value) noexcept nogil:
    return 1 + varint_bytes(<uint64_t> value)


cdef inline uint32_t body_head(uint32_t size) noexcept nogil:
    return 1 + varint_bytes(size)


cdef inline uint8_t* write_body_head(uint8_t* at, uint8_t field, uint32_t size) noexcept nogil:
    at[0] = (field << 3) | WIRE_BYTES
    return write_varint(at + 1, size)


cdef uint32_t v3_refusal(uint8_t* out, const Request* request, Status status) noexcept nogil:
    cdef uint8_t* end = write_start(out, request.version, request.op, request.request_id, request.priority, status)
    return close_frame(out, end, 0)


cdef uint32_t v3_answer(uint8_t* out, uint8_t op, uint64_t txn, Status status, int64_t ledger,
                        int64_t entry) noexcept nogil:
    cdef uint8_t* at = write_start(out, V3_VERSION, op, txn, 0, status)
    cdef bint has_entry = op == ADD_ENTRY or op == READ_ENTRY or op == BATCH_READ_ENTRY
    cdef bint has_ledger = op != GET_BOOKIE_INFO
    cdef uint32_t size = number_bytes(v3_code(status))
    if op == START_TLS:
        return close_frame(out, write_part(at, op, 0), 0)
    if has_ledger:
        size += number_bytes(ledger)
    if has_entry:
        size += number_bytes(entry)
    at = write_number(write_part(at, op, size), 1, v3_code(status))
    if has_ledger:
        at = write_number(at, 2, ledger)
    if has_entry:
        at = write_number(at, 3, entry)
    return close_frame(out, at, 0)


cdef void v3_tail(V3Tail* tail, bint has_lac, int64_t lac, bint has_time, int64_t time_ms) noexcept nogil:
    cdef uint8_t* end = tail.bytes
    if has_lac:
        end = write_number(end, 5, lac)
    if has_time:
        end = write_number(end, 6, time_ms)
    tail.size = <uint32_t> (end - tail.bytes)


cdef uint8_t* write_read(uint8_t* out, uint8_t op, uint64_t txn, int64_t ledger, int64_t entry,
                         uint32_t following) noexcept nogil:
    """Write the beginning of a successful single or batch read; its message has `following` bytes more."""
    cdef uint8_t* at = write_start(out, V3_VERSION, op, txn, 0, OK)
    at = write_part(at, op, number_bytes(0) + number_bytes(ledger) + number_bytes(entry) + following)
    at = write_number(at, 1, 0)
    at = write_number(at, 2, ledger)
    return write_number(at, 3, entry)


cdef uint32_t v3_read_head(uint8_t* out, uint64_t txn, int64_t ledger, int64_t entry, bint has_body, uint32_t body_size,
                           const V3Tail* tail) noexcept nogil:
    cdef uint8_t* at
    if not has_body:
        return close_frame(out, write_read(out, READ_ENTRY, txn, ledger, entry, tail.size), tail.size)
    at = write_read(out, READ_ENTRY, txn, ledger, entry, body_head(body_size) + body_size + tail.size)
    return close_frame(out, write_body_head(at, 4, body_size), body_size + tail.size)


cdef uint32_t v3_read_lac_head(uint8_t* out, uint64_t txn, Status status, int64_t ledger, const uint8_t* lac,
                               uint32_t lac_size, bint has_entry, uint32_t entry_size) noexcept nogil:
    cdef uint8_t* at = write_start(out, V3_VERSION, READ_LAC, txn, 0, status)
    cdef uint32_t size = number_bytes(v3_code(status)) + number_bytes(ledger)
    if lac != NULL:
        size += body_head(lac_size) + lac_size
    if has_entry:
        size += body_head(entry_size) + entry_size
    at = write_number(write_part(at, READ_LAC, size), 1, v3_code(status))
    at = write_number(at, 2, ledger)
    if lac != NULL:
        at = write_body_head(at, 3, lac_size)
        memcpy(at, lac, lac_size)
        at += lac_size
    if has_entry:
        at = write_body_head(at, 4, entry_size)
    return close_frame(out, at, entry_size if has_entry else 0)


cdef uint32_t v3_batch_head(uint8_t* out, uint64_t txn, int64_t ledger, int64_t start, uint32_t entries_bytes,
                            const V3Tail* tail) noexcept nogil:
    cdef uint32_t following = entries_bytes + tail.size
    return close_frame(out, write_read(out, BATCH_READ_ENTRY, txn, ledger, start, following), following)


cdef uint32_t v3_entry_prefix(uint8_t* out, uint32_t entry_size) noexcept nogil:
    cdef uint32_t size = V3_ENTRY_PREFIX - 1
    if entry_size >= V3_ENTRY_SMALL:
        size = varint_bytes(entry_size)
    out[0] = (4 << 3) | WIRE_BYTES
    write_padded(out + 1, entry_size, size)
    return 1 + size


cdef void v3_entries(uint8_t* run, uint64_t size) noexcept nogil:
    cdef uint64_t at = 0
    cdef uint32_t length
    while at < size:
        length = load_u32(run + at)
        v3_entry_prefix(run + at, length)
        at += LENGTH_PREFIX + <uint64_t> length


def refusal(int version, int op, uint64_t txn, uint32_t priority, int status):
    """Return a whole response of a copied header and a status."""
    cdef uint8_t[V3_ANSWER_MOST] out
    cdef Request request
    request.version = <uint8_t> version
    request.op = <uint8_t> op
    request.request_id = txn
    request.priority = priority
    return (<const char*> out)[:v3_refusal(out, &request, <Status> status)]


def answer(int op, uint64_t txn, int status, int64_t ledger=0, int64_t entry=0):
    """Return a whole response without bodies."""
    cdef uint8_t[V3_ANSWER_MOST] out
    if op == AUTH or not 0 <= op < 256 or v3_field(<uint8_t> op) == 0:
        raise ValueError(f"operation {op} has no response here; pass an OperationType that is served and is not AUTH")
    return (<const char*> out)[:v3_answer(out, <uint8_t> op, txn, <Status> status, ledger, entry)]


cdef void _tail(V3Tail* tail, lac, time_ms):
    v3_tail(tail, lac is not None, 0 if lac is None else lac, time_ms is not None, 0 if time_ms is None else time_ms)


def read_answer(uint64_t txn, int64_t ledger, int64_t entry, body=None, lac=None, time_ms=None):
    """Return a whole successful READ_ENTRY response."""
    cdef uint8_t[V3_HEAD_MOST] out
    cdef V3Tail tail
    cdef uint32_t size
    _tail(&tail, lac, time_ms)
    size = v3_read_head(out, txn, ledger, entry, body is not None, <uint32_t> len(body or b""), &tail)
    return (<const char*> out)[:size] + (body or b"") + (<const char*> tail.bytes)[:tail.size]


def read_lac_answer(uint64_t txn, int status, int64_t ledger, lac=None, entry=None):
    """Return a whole READ_LAC response; `lac` and `entry` are bytes or None."""
    cdef const uint8_t[::1] packet = lac or b"\0"
    cdef uint32_t room = V3_HEAD_MOST + (len(lac) if lac else 0)
    cdef uint8_t* out = <uint8_t*> malloc(room)
    cdef const uint8_t* base = NULL
    cdef uint32_t size
    if out == NULL:
        raise MemoryError(f"no memory for a response of {room} bytes")
    if lac is not None:
        base = &packet[0]
    try:
        size = v3_read_lac_head(out, txn, <Status> status, ledger, base, <uint32_t> len(lac or b""),
                                entry is not None, <uint32_t> len(entry or b""))
        return (<const char*> out)[:size] + (entry or b"")
    finally:
        free(out)


def batch_answer(uint64_t txn, int64_t ledger, int64_t start, entries=(), lac=None, time_ms=None):
    """Return a whole successful BATCH_READ_ENTRY response."""
    cdef uint8_t[V3_HEAD_MOST] out
    cdef V3Tail tail
    cdef uint32_t size
    payload = b"".join([prefix(len(entry)) + entry for entry in entries])
    _tail(&tail, lac, time_ms)
    size = v3_batch_head(out, txn, ledger, start, <uint32_t> len(payload), &tail)
    return (<const char*> out)[:size] + payload + (<const char*> tail.bytes)[:tail.size]


def prefix(uint32_t entry_size):
    """Return the prefix of an entry of a batch."""
    cdef uint8_t[V3_ENTRY_MOST] out
    return (<const char*> out)[:v3_entry_prefix(out, entry_size)]


def batch_entries(uint8_t[::1] run):
    """Convert whole records, each of an entry below 2 MiB, to entries of a batch, in place."""
    if run.shape[0]:
        v3_entries(&run[0], run.shape[0])
