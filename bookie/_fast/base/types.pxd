"""Types and constants that every module shares. No code, no state."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef enum Status:
    # The result of a data-path function. Error codes of the protocols are separate: see `wire.v2` and `wire.v3`.
    OK = 0
    NEED_MORE = 1          # a parser needs more bytes; nothing was consumed
    NO_LEDGER = 2
    NO_ENTRY = 3
    BAD_REQUEST = 4
    IO_ERROR = 5           # the disk failed, or bytes on it are damaged; never means that something does not exist
    UNAUTHORIZED = 6
    BAD_VERSION = 7
    FENCED = 8
    READ_ONLY = 9
    TOO_MANY_REQUESTS = 10
    UNKNOWN_STATE = 11     # the ledger is in limbo: a negative answer cannot be trusted
    FULL = 12              # no space in this page, half or queue now; try again later
    CORRUPT = 13           # bytes violate their format
    END = 14               # the regular end of a scan
    TORN = 15              # a scan ended inside a record
    NO_SPACE = 16          # ENOSPC or EDQUOT
    NO_MEMORY = 17
    CLOSED = 18            # the peer or the owner is gone
    PENDING = 19           # the result follows later (after a sync, or from the read pool)

cdef enum:
    ENTRY_HEADER_MIN = 16  # ledger id and entry id: the minimum that a record holds
    ENTRY_LAC_MIN = 24     # with the LAC field
    LENGTH_PREFIX = 4
    MASTER_KEY_BYTES = 20
    ENTRY_ID_LAST = -1     # in a read request: the entry with the highest id

cdef struct Slice:
    const unsigned char* base
    size_t size
