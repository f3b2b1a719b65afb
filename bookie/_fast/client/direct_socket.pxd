"""Sending and receiving on a socket that one thread at a time uses, in clear text or through TLS, with time limits.

Without TLS the socket blocks, and the kernel ends each of its calls after `tick_ns` (SO_RCVTIMEO and SO_SNDTIMEO), so a
limit is noticed without a further system call. With TLS it does not block, because a call of OpenSSL that has received
only a part of what it needs would wait for the rest. No GIL. The owner of the struct owns the descriptor and the SSL.
"""
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t

from bookie._fast.base.openssl_c cimport SSL

cdef enum Outcome:
    DONE = 0
    LATE = 1                     # the time limit has passed
    LOST = 2                     # the connection has ended, or TLS has failed
    INTERRUPTED = 3              # by a signal, or a tick is over, as a signal may come just before a wait; call again
    NO_ROOM = 4                  # the frame is larger than the memory given
    MALFORMED = 5                # the peer violated the protocol; the connection cannot be used any more
    REFUSED = 6                  # the response has an error code
    INVALID = 7                  # the entry has no valid digest, or is missing from the response

cdef struct DirectSocket:
    int fd                       # -1 once it is closed
    SSL* ssl                     # NULL: clear text
    int64_t tick_ns

# Let the kernel end calls on the socket after `tick_ns`. Return whether it agreed.
cdef bint socket_set_tick(DirectSocket* socket, int64_t tick_ns) noexcept nogil
# Send data[0, size), as far as the outcome says; `sent` is advanced by the bytes that were taken.
cdef Outcome socket_send(DirectSocket* socket, const uint8_t* data, size_t size, int64_t deadline_ns,
                         size_t* sent) noexcept nogil
# Receive at least one byte and at most `room`; `got` is the number of them if the outcome is DONE.
cdef Outcome socket_receive(DirectSocket* socket, uint8_t* to, size_t room, int64_t deadline_ns,
                            size_t* got) noexcept nogil
