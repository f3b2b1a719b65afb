"""The server's side of TLS on one connection, from memory to memory; the caller owns the socket.

A `Tls` belongs to the thread of its I/O loop and never takes the GIL. Received bytes are read in place and consumed
in the same round, so that only an incomplete record is kept; encrypted bytes stay in memory until `tls_send` has
passed them to the kernel. Renegotiation and resumption are not supported. All loops share one `TlsServer`.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.openssl_c cimport BIO, SSL, SSL_CTX
from bookie._fast.base.sync cimport pthread_mutex_t
from bookie._fast.base.types cimport Status

cdef enum TlsState:
    TLS_HANDSHAKE = 0
    TLS_OPEN = 1
    TLS_ENDED = 2            # the peer sent close_notify
    TLS_BROKEN = 3           # the handshake failed, or the peer sent an invalid record

cdef enum:
    TLS_RECORD = 16384       # the most plaintext bytes in one record
    TLS_OVERHEAD = 1024      # more than encryption ever adds to a record

cdef struct TlsServer:
    pthread_mutex_t lock     # guards `context`
    SSL_CTX* context         # for new handshakes
    int64_t handshakes_max   # at a time, over all loops
    int64_t per_address_max  # at a time, from one address
    int64_t timeout_ns       # of one handshake
    # Atomic counters.
    int64_t connections      # `Tls` structs that exist
    int64_t handshaking
    int64_t handshakes       # completed
    int64_t failed           # failed handshakes, including timeouts

cdef struct Tls:
    TlsServer* server
    SSL* ssl
    BIO* source              # the SSL owns both BIOs
    BIO* sink
    uint8_t state            # TlsState
    uint64_t grown           # the largest size that `sink` has had
    int64_t deadline_ns      # for the handshake

# Create a connection that waits for a ClientHello. Return NULL if there is no memory or too many handshakes are open.
cdef Tls* tls_accept(TlsServer* server) noexcept nogil
# Pass bytes received from the socket. They must stay in place until `tls_handshake` returns PENDING or `tls_read`
# returns. Return False if there is no memory.
cdef bint tls_take(Tls* tls, uint8_t* data, uint32_t size) noexcept nogil
# Continue the handshake. OK: it is complete, and `tls_read` decrypts what follows. PENDING: send, then wait for more
# bytes. CLOSED: it failed, and `tls_send` tells the peer why.
cdef Status tls_handshake(Tls* tls) noexcept nogil
# Decrypt all bytes passed in and return the number of plaintext bytes. `room`, the size of `to`, must cover those
# bytes and one record. The state may change.
cdef uint64_t tls_read(Tls* tls, uint8_t* to, uint64_t room) noexcept nogil
# Encrypt `size` bytes, at most TLS_RECORD. Return OK or CLOSED.
cdef Status tls_write(Tls* tls, const uint8_t* data, uint32_t size) noexcept nogil
# Send encrypted bytes. OK: all are sent; PENDING: the socket is full; CLOSED: the connection failed. `left` gets the
# number of unsent bytes.
cdef Status tls_send(Tls* tls, int fd, uint64_t* left) noexcept nogil
# Send close_notify as far as the socket takes it now, and free the Tls. The socket stays open.
cdef void tls_close(Tls* tls, int fd) noexcept nogil
# Copy the peer's certificate (DER), which the handshake verified. Return its size, or 0 if there is none or it needs
# more than `room` bytes.
cdef uint32_t tls_certificate(Tls* tls, uint8_t* to, uint32_t room) noexcept nogil

cdef class TlsServerContext:
    cdef TlsServer server
    cdef object context      # keeps the pyOpenSSL context alive
