"""Rejected peers, for the log: an I/O loop notes them without the GIL, Python drains the table once a second.

The table is bounded: the same reason from the same address is one row, and what finds no row is counted without its
address.
"""
from libc.stdint cimport int64_t, uint8_t

from bookie._fast.base.sync cimport pthread_mutex_t
from bookie._fast.server.addresses cimport ADDRESS_BYTES

cdef enum:
    REJECTIONS_MOST = 64         # of one loop, between two drains

cdef enum Reason:
    BAD_LENGTH = 0               # of a frame
    BAD_FRAME = 1                # not readable by either protocol
    TOO_MUCH_OUTPUT = 2          # it does not read its responses
    TOO_MUCH_INPUT = 3           # its frames exceed the budget of input
    TOO_MANY_CONNECTIONS = 4     # in total
    TOO_MANY_OF_ADDRESS = 5
    TOO_LONG_UNAUTHENTICATED = 6
    TOO_LONG_IDLE = 7
    BAD_HANDSHAKE = 8            # of TLS
    TOO_LONG_HANDSHAKE = 9
    TOO_MANY_HANDSHAKES = 10
    CLEAR_AFTER_TLS = 11         # bytes in clear after START_TLS
    TOO_SLOW = 12                # it read its responses more slowly than others, and the budget of output is used up
    TOO_MANY_LOGINS = 13         # too many wait for Python
    TOO_LONG_LOGIN = 14          # a frame before the login is too long
    EARLY_TLS = 15               # START_TLS while requests were in progress
    EARLY_BATCH = 16             # batch read before authentication; V2 cannot express that error
    OUT_OF_MEMORY = 17
    IN_CLEAR = 18                # a request in clear although TLS is required
    OTHER_PLUGIN = 19            # repeated logins with a plugin that is not configured
    REVOKED = 20                 # its user was revoked
    TOO_MANY_HANDSHAKES_OF_ADDRESS = 21
    REASONS = 22

cdef struct Rejection:
    uint8_t ip[ADDRESS_BYTES]
    uint8_t reason
    int64_t count

cdef struct Rejections:
    pthread_mutex_t lock
    Rejection rows[REJECTIONS_MOST]
    int64_t count                # atomic
    int64_t lost                 # violations whose address was dropped
    int64_t totals[REASONS]      # since the start

cdef void rejections_init(Rejections* rejections) noexcept nogil
# Note a violation. Runs on the loop's own thread, or on the one that accepts for it.
cdef void reject(Rejections* rejections, const uint8_t* ip, Reason reason) noexcept nogil
# Return [(16 address bytes, reason, count)] since the last call; all zeros stand for dropped addresses. For Python.
cdef list rejections_drain(Rejections* rejections)
