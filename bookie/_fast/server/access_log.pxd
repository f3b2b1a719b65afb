"""The access log: a sample of the adds and reads that were answered, one line each, in files that are rotated.

Each I/O loop notes its samples in a ring of its own; one thread turns the rings into text and writes it. A sample that
finds its ring full is counted and dropped. A failed write loses its lines and is reported, and has no other effect:
the log is no part of any guarantee.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from bookie._fast.base.file cimport Files
from bookie._fast.base.sync cimport pthread_cond_t, pthread_mutex_t
from bookie._fast.server.addresses cimport ADDRESS_BYTES

cdef enum:
    ACCESS_RINGS_MOST = 128
    ACCESS_ROWS = 8192           # rows of a ring; a power of two
    NO_LOG_ID = 0xFFFFFFFF       # the entries came from memory, not from an entry log

cdef enum AccessSource:
    FROM_CLIENT = 0              # an add
    FROM_WRITE_CACHE = 1
    FROM_READ_CACHE = 2
    FROM_DISK = 3

cdef struct AccessRow:
    int64_t at_us                # wall clock of the response
    int64_t ledger
    int64_t entry                # the first one of a batch
    uint64_t size                # bytes of entries
    uint64_t position            # of the first disk read, in log `log_id`
    uint32_t log_id
    uint32_t latency_us
    uint16_t port
    uint8_t ip[ADDRESS_BYTES]
    uint8_t op
    uint8_t source

cdef struct AccessRing:
    AccessRow* rows
    int64_t noted                # atomic; the loop's
    int64_t written              # atomic; the writer's
    int64_t dropped              # atomic
    uint64_t random              # the loop's
    uint64_t share               # of requests that are sampled, in units of 2^-32

# Return whether to sample this request. The loop's thread.
cdef inline bint access_wanted(AccessRing* ring) noexcept nogil:
    ring.random ^= ring.random << 13
    ring.random ^= ring.random >> 7
    ring.random ^= ring.random << 17
    return (ring.random >> 32) < ring.share

# Return a row to fill in except for time and client, or NULL if it is dropped. The loop's thread; call `access_noted`
# next.
cdef AccessRow* access_row(AccessRing* ring) noexcept nogil
# Add time and client (the peer of socket `fd`) to the row and publish it.
cdef void access_noted(AccessRing* ring, AccessRow* row, int fd, int64_t latency_ns) noexcept nogil

cdef class AccessLogBuffer:
    cdef AccessRing rings[ACCESS_RINGS_MOST]
    cdef int ring_count
    cdef uint64_t share
    cdef Files files
    cdef list names              # file names, newest first
    cdef const char* paths[65]
    cdef int kept
    cdef uint64_t file_bytes_max
    cdef pthread_mutex_t lock    # guards `stopping`
    cdef pthread_cond_t wake
    cdef bint stopping
    cdef int fd                  # -1 if no file is open; the writer's
    cdef uint64_t size
    cdef uint8_t* text
    cdef uint64_t used
    cdef int64_t lines           # atomic
    cdef int64_t lost            # atomic; lines that could not be written
    cdef AccessRing* ring(self) except NULL
    cdef int drain(self) noexcept nogil
    cdef int flush(self) noexcept nogil
    cdef int rotate(self) noexcept nogil
