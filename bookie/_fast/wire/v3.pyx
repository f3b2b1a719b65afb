"""V3 requests, parsed by tables of the messages' fields. Any thread; the pointers of a request refer to its frame.

All fields of all messages are checked, not only those of the operation: a message that the protobuf library rejects
is not a V3 request, and its connection is treated as V2 from then on.
"""
from libc.stddef cimport size_t
from libc.string cimport memset

from bookie._fast.base.planted cimport PLANT_V3_FENCE_LOST, bk_planted
from bookie._fast.base.types cimport (
    BAD_REQUEST,
    BAD_VERSION,
    CORRUPT,
    FENCED,
    FULL,
    IO_ERROR,
    NO_ENTRY,
    NO_LEDGER,
    NO_MEMORY,
    NO_SPACE,
    OK,
    READ_ONLY,
    TOO_MANY_REQUESTS,
    TORN,
    UNAUTHORIZED,
    UNKNOWN_STATE,
)
from bookie._fast.wire.proto cimport (
    NESTING_MAX,
    WIRE_BYTES,
    WIRE_VARINT,
    read_size,
    read_tag,
    read_varint,
    skip_field,
)
from bookie._fast.wire.request cimport (
    DEFERRED_SYNC,
    FENCE,
    HIGH_PRIORITY,
    LONG_POLL,
    PIGGYBACK,
    READ_ENTRY,
    RECOVERY_ADD,
    TIMED,
)

cdef enum:
    # Messages by field number of Request minus 100, then those that belong to no operation.
    READ = 0
    ADD = 1
    AUTHENTICATE = 2
    EXPLICIT_LAC = 3
    INFO = 5
    TLS = 6                      # has no fields
    BATCH = 9
    CLOSE = 10
    HEADER = 11
    CONTEXT = 12
    NO_PART = 13

cdef enum:
    PARTS = 12                   # messages that are kept; a context is checked and dropped
    SLOTS = 8                    # fields 1 to 7, then field 100
    FLAG_SLOT = 7
    NUMBER = 1                   # kinds of fields: an integer, bytes, and CHOICE + n for an enum with the values 1 to n
    BYTES = 2
    CHOICE = 0x10
    READ_TAG_LOW = 0xA2          # tag of ReadRequest, two bytes
    READ_TAG_HIGH = 0x06
    FLAG_FIELD = 100
    CONTEXT_FIELD = 200
    DEFERRED_SYNC_BIT = 1
    FENCE_LEDGER_VALUE = 1
    PIGGYBACK_VALUE = 2

cdef extern from *:
    """
    typedef struct { uint8_t required; uint8_t kinds[8]; } bk_rules;  /* required: a bit for each slot */
    enum { bk_n = 1, bk_b = 2, bk_e = 0x10 };
    static const bk_rules bk_messages[13] = {
        /* ReadRequest */                     {0x03, {bk_n, bk_n, bk_b, bk_n, bk_n, 0, 0, bk_e + 2}},
        /* AddRequest */                      {0x0F, {bk_n, bk_n, bk_b, bk_b, bk_n, 0, 0, bk_e + 1}},
        /* AuthMessage */                     {0x03, {bk_b, bk_b}},
        /* WriteLacRequest */                 {0x0F, {bk_n, bk_n, bk_b, bk_b}},
        /* ReadLacRequest */                  {0x01, {bk_n}},
        /* GetBookieInfoRequest */            {0x00, {bk_n}},
        /* StartTLSRequest */                 {0x00, {0}},
        /* ForceLedgerRequest */              {0x01, {bk_n}},
        /* GetListOfEntriesOfLedgerRequest */ {0x01, {bk_n}},
        /* BatchReadRequest */                {0x0F, {bk_n, bk_n, bk_n, bk_n, bk_b, bk_n, bk_n, bk_e + 2}},
        /* WriteCloseRequest */               {0x03, {bk_n, bk_b}},
        /* BKPacketHeader */                  {0x07, {bk_e + 3, bk_e + 13, bk_n, bk_n}},
        /* ContextPair */                     {0x03, {bk_b, bk_b}},
    };
    """
    ctypedef struct bk_rules:
        uint8_t required
        uint8_t* kinds
    const bk_rules* bk_messages

cdef struct Value:
    uint64_t number              # for bytes: their count
    const uint8_t* base

cdef struct Message:
    # One message, all its occurrences merged. Only the values in `present` are set.
    uint8_t present
    Value values[SLOTS]
    const uint8_t* last          # the last occurrence
    uint32_t last_size

cdef struct Parsed:
    uint32_t seen                # a bit for each message that occurred; the others are not initialised
    uint32_t again               # a bit for each message that occurred more than once
    Message parts[PARTS]


cdef inline bint whole(const Message* message, uint32_t part) noexcept nogil:
    return message.present & bk_messages[part].required == bk_messages[part].required


cdef inline uint8_t kind_of(uint32_t part, uint32_t number, uint32_t* slot) noexcept nogil:
    """Return the kind of field `number`, or 0 if the message has no such field; `slot` gets its place."""
    if number - 1 < FLAG_SLOT:
        slot[0] = number - 1
    elif number == FLAG_FIELD:
        slot[0] = FLAG_SLOT
    else:
        return 0
    return bk_messages[part].kinds[slot[0]]


cdef inline const uint8_t* parse_field(Message* message, uint32_t part, uint32_t tag, const uint8_t* at,
                                       const uint8_t* end, uint32_t nesting) noexcept nogil:
    """Parse one field; `at` is the position after its tag. A field with another wire type than expected is unknown."""
    cdef uint32_t size
    cdef uint32_t slot = 0
    cdef uint64_t number
    cdef uint8_t kind = kind_of(part, tag >> 3, &slot)
    if kind == BYTES and tag & 7 == WIRE_BYTES:
        at = read_size(at, end, &size)
        if at == NULL:
            return NULL
        message.values[slot].base = at
        message.values[slot].number = size
        message.present |= 1 << slot
        return at + size
    if kind == 0 or kind == BYTES or tag & 7 != WIRE_VARINT:
        if tag >> 3 == 0 and part != TLS:
            return NULL
        return skip_field(at, end, tag, nesting)
    at = read_varint(at, end, &number)
    if at == NULL:
        return NULL
    if kind > CHOICE and <uint32_t> number - 1 >= <uint32_t> kind - CHOICE:
        return at                # an enum value that is unknown: the field keeps its value
    message.values[slot].number = number
    message.present |= 1 << slot
    return at


cdef bint parse_message(Message* message, uint32_t part, const uint8_t* at, uint32_t size,
                        uint32_t nesting) noexcept nogil:
    cdef const uint8_t* end = at + size
    cdef uint32_t tag
    message.last = at
    message.last_size = size
    while at != end:
        at = read_tag(at, end, &tag)
        if at != NULL:
            at = parse_field(message, part, tag, at, end, nesting)
        if at == NULL:
            return False
    return True


cdef inline uint32_t part_of(uint32_t tag) noexcept nogil:
    """Return which message a field of the request holds, or NO_PART for another field or wire type."""
    cdef uint32_t number = tag >> 3
    if tag & 7 != WIRE_BYTES:
        return NO_PART
    if number == V3_HEADER_FIELD:
        return HEADER
    if number - V3_FIRST_FIELD <= CLOSE:
        return number - V3_FIRST_FIELD
    return CONTEXT if number == CONTEXT_FIELD else NO_PART


cdef bint parse_parts(const uint8_t* at, const uint8_t* end, uint32_t nesting, Parsed* parsed) noexcept nogil:
    """Parse all messages of the frame; return whether the bytes are valid."""
    cdef Message context
    cdef uint32_t tag, part, size
    while at != end:
        at = read_tag(at, end, &tag)
        if at == NULL:
            return False
        part = part_of(tag)
        if part == NO_PART:
            at = skip_field(at, end, tag, nesting)
            if at == NULL or tag >> 3 == 0:
                return False
            continue
        at = read_size(at, end, &size)
        if at == NULL:
            return False
        if part == CONTEXT:
            context.present = 0
            if not parse_message(&context, part, at, size, nesting - 1) or not whole(&context, part):
                return False
        else:
            if parsed.seen & 1 << part:
                parsed.again |= 1 << part
            else:
                parsed.seen |= 1 << part
                parsed.parts[part].present = 0
            if not parse_message(&parsed.parts[part], part, at, size, nesting - 1):
                return False
        at += size
    return True


cdef void fill_bytes(const Message* message, uint32_t slot, const uint8_t** base, uint32_t* size) noexcept nogil:
    if message.present & 1 << slot:
        base[0] = message.values[slot].base
        size[0] = <uint32_t> message.values[slot].number


cdef void fill_reading(const Message* message, uint32_t key, uint32_t poll, Request* request) noexcept nogil:
    """Set the common fields of single and batch reads; `key` and `poll` are the slots of the key and of previousLAC.
    """
    cdef uint64_t flag = <uint32_t> message.values[FLAG_SLOT].number if message.present & 1 << FLAG_SLOT else 0
    request.entry = <int64_t> message.values[1].number
    fill_bytes(message, key, &request.key, &request.key_size)
    if flag == FENCE_LEDGER_VALUE and not bk_planted(PLANT_V3_FENCE_LOST):
        request.flags |= FENCE
    elif flag == PIGGYBACK_VALUE:
        request.flags |= PIGGYBACK
    if message.present & 1 << poll:
        request.flags |= LONG_POLL
        request.previous_lac = <int64_t> message.values[poll].number
    if message.present & 2 << poll:
        request.flags |= TIMED
        request.timeout_ms = <int64_t> message.values[poll + 1].number


cdef void fill_add(const Message* message, Request* request) noexcept nogil:
    request.entry = <int64_t> message.values[1].number
    fill_bytes(message, 2, &request.key, &request.key_size)
    fill_bytes(message, 3, &request.body, &request.body_size)
    if message.present & 1 << FLAG_SLOT:
        request.flags |= RECOVERY_ADD
    elif message.present & 1 << 4 and message.values[4].number & DEFERRED_SYNC_BIT:
        request.flags |= DEFERRED_SYNC


cdef void fill_part(const Parsed* parsed, uint32_t part, Request* request) noexcept nogil:
    cdef const Message* message = &parsed.parts[part]
    if bk_messages[part].required & 1 and part != AUTHENTICATE:
        request.ledger = <int64_t> message.values[0].number
    if part == READ:
        fill_reading(message, 2, 3, request)
    elif part == ADD:
        fill_add(message, request)
    elif part == BATCH:
        request.count_max = <int32_t> <uint32_t> message.values[2].number
        request.size_max = <int64_t> message.values[3].number
        fill_reading(message, 4, 5, request)
    elif part == EXPLICIT_LAC:
        request.argument = <int64_t> message.values[1].number
        fill_bytes(message, 2, &request.key, &request.key_size)
        fill_bytes(message, 3, &request.body, &request.body_size)
    elif part == CLOSE:
        fill_bytes(message, 1, &request.key, &request.key_size)
    elif part == INFO and message.present & 1:
        request.argument = <int64_t> message.values[0].number
    elif part == AUTHENTICATE and not parsed.again & 1 << part:
        request.body = message.last
        request.body_size = message.last_size


cdef inline const uint8_t* read_number(const uint8_t* at, const uint8_t* end, uint8_t field,
                                       uint64_t* value) noexcept nogil:
    """Read the integer field `field` (1 to 15), which must be at `at`. Return NULL if it is not, or if `at` is NULL.
    """
    if at == NULL or at == end or at[0] != (field << 3 | WIRE_VARINT):
        return NULL
    return read_varint(at + 1, end, value)


cdef bint parse_plain_read(const uint8_t* frame, uint32_t size, Request* request) noexcept nogil:
    """Parse a read that has nothing but ids, written in the order that all clients use: most requests of a busy
    reader. Return False, with only numbers set, if it is another request or written in another way.
    """
    cdef const uint8_t* end = frame + size
    cdef const uint8_t* at
    cdef uint64_t version = 0, op = 0, ledger = 0, entry = 0
    if size < 2 or frame[0] != (V3_HEADER_FIELD << 3 | WIRE_BYTES) or frame[1] >= 0x80 or frame[1] > size - 2:
        return False
    at = read_number(frame + 2, frame + 2 + frame[1], 1, &version)
    at = read_number(at, frame + 2 + frame[1], 2, &op)
    at = read_number(at, frame + 2 + frame[1], 3, &request.request_id)
    if at != frame + 2 + frame[1] or version != V3_VERSION or op != READ_ENTRY:
        return False
    if end - at < 3 or at[0] != READ_TAG_LOW or at[1] != READ_TAG_HIGH or at[2] >= 0x80 or at[2] != end - at - 3:
        return False
    at = read_number(at + 3, end, 1, &ledger)
    at = read_number(at, end, 2, &entry)
    request.ledger = <int64_t> ledger
    request.entry = <int64_t> entry
    return at == end


cdef Status v3_parse(const uint8_t* frame, uint32_t size, uint32_t nesting, Request* request) noexcept nogil:
    cdef Parsed parsed
    cdef const Message* header = &parsed.parts[HEADER]
    cdef uint32_t part
    memset(request, 0, sizeof(Request))
    if parse_plain_read(frame, size, request):
        request.protocol = request.version = V3_VERSION
        request.op = READ_ENTRY
        return OK
    request.request_id = request.ledger = request.entry = 0
    parsed.seen = 0
    parsed.again = 0
    if not parse_parts(frame, frame + size, nesting, &parsed) or not parsed.seen & 1 << HEADER:
        return CORRUPT
    for part in range(PARTS):
        if parsed.seen & 1 << part and not whole(&parsed.parts[part], part):
            return CORRUPT
    request.protocol = V3_VERSION
    request.version = <uint8_t> header.values[0].number
    request.op = <uint8_t> header.values[1].number
    request.request_id = header.values[2].number
    if header.present & 1 << 3:
        request.priority = <uint32_t> header.values[3].number
    if request.priority:
        request.flags |= HIGH_PRIORITY
    part = v3_field(request.op) - V3_FIRST_FIELD
    if part >= PARTS or not parsed.seen & 1 << part:
        return BAD_REQUEST
    fill_part(&parsed, part, request)
    return OK


cdef int32_t v3_code(Status status) noexcept nogil:
    if status == OK:
        return 0
    if status == NO_LEDGER:
        return 402
    if status == NO_ENTRY:
        return 403
    if status == UNAUTHORIZED:
        return 502
    if status == BAD_VERSION:
        return 503
    if status == FENCED:
        return 504
    if status == READ_ONLY:
        return 505
    if status == TOO_MANY_REQUESTS or status == FULL:
        return 506
    if status == UNKNOWN_STATE:
        return 507
    if status == IO_ERROR or status == CORRUPT or status == TORN or status == NO_SPACE or status == NO_MEMORY:
        return 501
    return 404


cdef bytes _bytes_or_none(const uint8_t* base, uint32_t size):
    return None if base == NULL else (<const char*> base)[:size]


def parse(const uint8_t[::1] frame, uint32_t nesting=NESTING_MAX):
    """Parse the body of a frame (no length word) and return (status, fields). For tests and tools, not the data path.
    """
    cdef Request request
    cdef size_t size = frame.shape[0]
    cdef Status status = v3_parse(&frame[0] if size else NULL, <uint32_t> size, nesting, &request)
    fields = {
        "version": request.version,
        "op": request.op,
        "flags": request.flags,
        "priority": request.priority,
        "ledger": request.ledger,
        "entry": request.entry,
        "request_id": request.request_id,
        "count_max": request.count_max,
        "size_max": request.size_max,
        "previous_lac": request.previous_lac,
        "timeout_ms": request.timeout_ms,
        "argument": request.argument,
        "key": _bytes_or_none(request.key, request.key_size),
        "body": _bytes_or_none(request.body, request.body_size),
    }
    return <int> status, fields


def parse_often(const uint8_t[::1] frame, int64_t times):
    """Parse the same frame `times` times and return the last status. For benchmarks."""
    cdef Request request
    cdef size_t size = frame.shape[0]
    cdef const uint8_t* base = &frame[0] if size else NULL
    cdef Status status = CORRUPT
    cdef int64_t _k
    with nogil:
        for _k in range(times):
            status = v3_parse(base, <uint32_t> size, NESTING_MAX, &request)
    return <int> status


def code(int status):
    """Return the StatusCode of a Status number."""
    return v3_code(<Status> status)
