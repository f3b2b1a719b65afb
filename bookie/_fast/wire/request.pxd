"""A request as the data path sees it, whichever protocol it came in. No code, no state.

The parsers (`wire.v2`, `wire.v3`) fill it in place: its pointers refer to the frame and are valid as long as that is.
Fields that a protocol or an operation does not carry are zero.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum Operation:
    # Numbers of V3's OperationType; `wire.v2` maps V2's opcodes to them.
    READ_ENTRY = 1
    ADD_ENTRY = 2
    RANGE_READ_ENTRY = 3         # never served
    RANGE_ADD_ENTRY = 4          # never served
    AUTH = 5
    WRITE_LAC = 6
    READ_LAC = 7
    GET_BOOKIE_INFO = 8
    START_TLS = 9
    FORCE_LEDGER = 10
    GET_LIST_OF_ENTRIES_OF_LEDGER = 11
    BATCH_READ_ENTRY = 12
    WRITE_CLOSE = 13

cdef enum RequestFlag:
    FENCE = 0x0001               # the first three flags are V2's bits
    RECOVERY_ADD = 0x0002
    HIGH_PRIORITY = 0x0004       # V3: priority > 0
    PIGGYBACK = 0x0100           # a read that also wants the LAC, and the entry after `previous_lac`
    DEFERRED_SYNC = 0x0200       # acknowledge when written, before the sync
    LONG_POLL = 0x0400           # `previous_lac` is set
    TIMED = 0x0800               # `timeout_ms` is set
    URGENT = 0x1000              # it fences or has high priority, and may overtake others (`server.admission`)

cdef struct Request:
    uint8_t protocol             # 2 or 3; the response uses the same
    uint8_t version              # as sent; V2 compares it as a signed number
    uint8_t op
    uint32_t flags
    uint32_t priority            # V3, as sent: some responses copy the header
    int64_t ledger
    int64_t entry                # for a batch read the first entry
    uint64_t request_id          # V2: of a batch read; V3: the transaction id
    int32_t count_max            # batch read
    int64_t size_max             # batch read, bytes
    int64_t previous_lac
    int64_t timeout_ms
    int64_t argument             # WRITE_LAC: lac; GET_BOOKIE_INFO: requested
    const uint8_t* key           # the master key; NULL if the request carries none
    uint32_t key_size
    const uint8_t* body          # ADD: the entry as stored; WRITE_LAC: the packet; AUTH: the AuthMessage
    uint32_t body_size
