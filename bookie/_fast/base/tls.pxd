"""The server's side of TLS on one connection: bytes in, bytes out, on memory; the socket stays its owner's.

Everything of a `Tls` runs on the thread of its I/O loop and never takes the GIL. What the peer sent is read from where
it lies and used up in the same round, so nothing is kept but an incomplete record; what is encrypted gathers in memory
until `tls_send` has given it to the kernel. There is no renegotiation and no resumption. All loops share `TlsServer`.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.openssl_c cimport BIO, SSL, SSL_CTX
from bookie._fast.base.sync cimport pthread_mutex_t
from bookie._fast.base.types cimport Status

cdef enum TlsState:
    TLS_HANDSHAKE = 0
    TLS_OPEN = 1
    TLS_ENDED = 2            # the peer said good-bye
    TLS_BROKEN = 3           # the handshake failed, or what came later is no TLS

cdef enum:
    TLS_RECORD = 16384       # the most plain bytes that one record holds
    TLS_OVERHEAD = 1024      # more than a record ever adds

cdef struct TlsServer:
    pthread_mutex_t lock     # guards `context`
    SSL_CTX* context         # of new handshakes
    int64_t handshakes_max   # at a time, over all loops
    int64_t per_address_max  # of these, from one address
    int64_t timeout_ns       # of one handshake
    # atomic
    int64_t connections      # `Tls` alive
    int64_t handshaking
    int64_t handshakes       # completed
    int64_t failed           # handshakes, those that timed out included

cdef struct Tls:
    TlsServer* server
    SSL* ssl
    BIO* source              # both are the SSL's
    BIO* sink
    uint8_t state            # TlsState
    uint64_t grown           # the most that `sink` ever held
    int64_t deadline_ns      # of the handshake

# A connection that waits for a ClientHello. NULL: no memory, or too many handshakes.
cdef Tls* tls_accept(TlsServer* server) noexcept nogil
# Here is what the socket had. The bytes must stay there until `tls_handshake` says PENDING or `tls_read` is done.
cdef bint tls_take(Tls* tls, uint8_t* data, uint32_t size) noexcept nogil
# OK: done, `tls_read` has what follows. PENDING: send, then wait for more. CLOSED: failed; send tells the peer why.
cdef Status tls_handshake(Tls* tls) noexcept nogil
# Decrypt all that was taken: how many bytes. `room` must hold what was taken and one record. The state may change.
cdef uint64_t tls_read(Tls* tls, uint8_t* to, uint64_t room) noexcept nogil
# Encrypt `size` bytes, at most one record.
cdef Status tls_write(Tls* tls, const uint8_t* data, uint32_t size) noexcept nogil
# Give the kernel what is encrypted. OK, PENDING when it is full, CLOSED. `left`: bytes that still wait.
cdef Status tls_send(Tls* tls, int fd, uint64_t* left) noexcept nogil
# Say good-bye, as far as the socket takes it at once, and free. The socket stays open.
cdef void tls_close(Tls* tls, int fd) noexcept nogil
# The peer's certificate (DER), verified by the handshake. 0: it has none, or there is no room for it.
cdef uint32_t tls_certificate(Tls* tls, uint8_t* to, uint32_t room) noexcept nogil

cdef class TlsServerContext:
    cdef TlsServer server
    cdef object context      # keeps the pyOpenSSL context alive
