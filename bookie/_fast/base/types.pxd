"""The C vocabulary that every module shares. No code, no state."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef enum Status:
    # What a data-path function answers. Wire codes are a column of `wire.v2`, not these numbers.
    OK = 0
    NEED_MORE = 1          # a parser has too few bytes; nothing was consumed
    NO_LEDGER = 2
    NO_ENTRY = 3
    BAD_REQUEST = 4
    IO_ERROR = 5           # the disk failed or bytes on it are wrong; never a negative answer
    UNAUTHORIZED = 6
    BAD_VERSION = 7
    FENCED = 8
    READ_ONLY = 9
    TOO_MANY_REQUESTS = 10
    UNKNOWN_STATE = 11     # the ledger is in limbo: a negative answer cannot be trusted
    FULL = 12              # no room in this page, half or queue now; try again later
    CORRUPT = 13           # bytes violate their format
    END = 14               # regular end of a scan
    TORN = 15              # a scan ended inside a record
    NO_SPACE = 16          # ENOSPC or EDQUOT
    NO_MEMORY = 17
    CLOSED = 18            # the peer or the owner is gone
    PENDING = 19           # the answer follows later (sync, read pool)

cdef enum:
    ENTRY_HEADER_MIN = 16  # ledger id and entry id: the least a record must hold
    ENTRY_LAC_MIN = 24     # with the LAC field
    LENGTH_PREFIX = 4
    MASTER_KEY_BYTES = 20
    ENTRY_ID_LAST = -1     # in a READ: the highest stored entry

cdef struct Slice:
    const unsigned char* base
    size_t size
