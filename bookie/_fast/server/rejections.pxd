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
    BAD_FRAME = 1                # neither protocol can read it
    TOO_MUCH_OUTPUT = 2          # it does not read its answers
    TOO_MUCH_INPUT = 3           # its frames are more than the budget holds
    TOO_MANY_CONNECTIONS = 4     # in all
    TOO_MANY_OF_ADDRESS = 5
    TOO_LONG_UNAUTHENTICATED = 6
    TOO_LONG_IDLE = 7
    BAD_HANDSHAKE = 8            # of TLS
    TOO_LONG_HANDSHAKE = 9
    TOO_MANY_HANDSHAKES = 10
    CLEAR_AFTER_TLS = 11         # bytes in clear behind START_TLS
    TOO_SLOW = 12                # it took its answers more slowly than others, and the budget of output is used up
    TOO_MANY_LOGINS = 13         # as many wait for Python as may
    TOO_LONG_LOGIN = 14          # a frame before the login
    EARLY_TLS = 15               # START_TLS while requests were under way
    EARLY_BATCH = 16             # V2 cannot refuse a batch read for want of authentication but by the end
    OUT_OF_MEMORY = 17
    IN_CLEAR = 18                # a request in clear where TLS is required
    OTHER_PLUGIN = 19            # it logged in by another plugin, again and again
    REVOKED = 20                 # who it is may not come any more
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
    int64_t lost                 # that found no place
    int64_t totals[REASONS]      # since the start

cdef void rejections_init(Rejections* rejections) noexcept nogil
# The loop's own thread, or that which accepts for it.
cdef void reject(Rejections* rejections, const uint8_t* ip, Reason reason) noexcept nogil
# For Python: [(16 address bytes, reason, times)] since the last call; all zeros stand for those that found no place.
cdef list rejections_drain(Rejections* rejections)
