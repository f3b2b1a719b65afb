"""TLS on memory BIOs of OpenSSL. The error queue belongs to the thread, so every call starts by clearing it."""
from libc.errno cimport EAGAIN, EINTR, errno
from libc.limits cimport INT_MAX
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from bookie._fast.base.openssl_c cimport (
    SSL_ERROR_WANT_READ,
    SSL_ERROR_ZERO_RETURN,
    SSL_MODE_AUTO_RETRY,
    SSL_MODE_RELEASE_BUFFERS,
    X509,
    context_pointer,
    openssl,
)
from bookie._fast.base.sync cimport (
    bk_add,
    bk_load,
    now_ns,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)
from bookie._fast.base.types cimport CLOSED, OK, PENDING

cdef extern from "<sys/socket.h>" nogil:
    ssize_t send(int, const void*, size_t, int) noexcept
    int MSG_NOSIGNAL
    int MSG_DONTWAIT

cdef enum:
    KEEP_BYTES = 1 << 15         # an empty sink that was ever larger than this is freed


cdef BIO* memory_sink() noexcept nogil:
    return openssl.bio_new(openssl.bio_s_mem())


cdef Tls* tls_accept(TlsServer* server) noexcept nogil:
    cdef Tls* tls
    if bk_add(&server.handshaking, 1) > server.handshakes_max:
        bk_add(&server.handshaking, -1)
        bk_add(&server.failed, 1)
        return NULL
    tls = <Tls*> calloc(1, sizeof(Tls))
    if tls != NULL:
        openssl.err_clear_error()
        pthread_mutex_lock(&server.lock)
        tls.ssl = openssl.ssl_new(server.context)
        pthread_mutex_unlock(&server.lock)
        tls.source = openssl.bio_new_mem_buf(<void*> b"", 0)
        tls.sink = memory_sink()
    if tls == NULL or tls.ssl == NULL or tls.source == NULL or tls.sink == NULL:
        if tls != NULL:
            openssl.ssl_free(tls.ssl)
            openssl.bio_free(tls.source)
            openssl.bio_free(tls.sink)
        free(tls)
        bk_add(&server.handshaking, -1)
        return NULL
    openssl.bio_set_mem_eof_return(tls.source, -1)
    openssl.ssl_set_bio(tls.ssl, tls.source, tls.sink)
    openssl.ssl_set_mode(tls.ssl, SSL_MODE_AUTO_RETRY | SSL_MODE_RELEASE_BUFFERS)
    openssl.ssl_set_accept_state(tls.ssl)
    tls.server = server
    tls.deadline_ns = now_ns() + server.timeout_ns
    bk_add(&server.connections, 1)
    return tls


cdef bint tls_take(Tls* tls, uint8_t* data, uint32_t size) noexcept nogil:
    cdef BIO* source = openssl.bio_new_mem_buf(data, <int> size)
    if source == NULL:
        return False
    openssl.bio_set_mem_eof_return(source, -1)
    openssl.ssl_set_bio(tls.ssl, source, tls.sink)
    tls.source = source
    return True


cdef void handshake_over(Tls* tls, TlsState state) noexcept nogil:
    tls.state = state
    bk_add(&tls.server.handshaking, -1)
    bk_add(&tls.server.handshakes if state == TLS_OPEN else &tls.server.failed, 1)


cdef Status tls_handshake(Tls* tls) noexcept nogil:
    cdef int result
    openssl.err_clear_error()
    result = openssl.ssl_do_handshake(tls.ssl)
    if result == 1:
        handshake_over(tls, TLS_OPEN)
        return OK
    if openssl.ssl_get_error(tls.ssl, result) == SSL_ERROR_WANT_READ:
        return PENDING
    handshake_over(tls, TLS_BROKEN)
    return CLOSED


cdef uint64_t tls_read(Tls* tls, uint8_t* to, uint64_t room) noexcept nogil:
    cdef uint64_t got = 0
    cdef int n, error
    while tls.state == TLS_OPEN:
        openssl.err_clear_error()
        n = openssl.ssl_read(tls.ssl, to + got, <int> (room - got) if room - got < INT_MAX else INT_MAX)
        if n > 0:
            got += <uint64_t> n
            continue
        error = openssl.ssl_get_error(tls.ssl, n)
        if error == SSL_ERROR_WANT_READ:
            break
        tls.state = TLS_ENDED if error == SSL_ERROR_ZERO_RETURN else TLS_BROKEN
    return got


cdef Status tls_write(Tls* tls, const uint8_t* data, uint32_t size) noexcept nogil:
    cdef uint32_t done = 0
    cdef int n
    while done < size:
        openssl.err_clear_error()
        n = openssl.ssl_write(tls.ssl, <void*> (data + done), <int> (size - done))
        if n <= 0:
            tls.state = TLS_BROKEN
            return CLOSED
        done += <uint32_t> n
    return OK


cdef void consumed(Tls* tls, uint64_t size, bint all_of_it) noexcept nogil:
    """Remove `size` bytes from the front of the sink; if it grew large and is empty now, replace it to free its
    memory.
    """
    cdef uint8_t nowhere[TLS_RECORD]
    cdef BIO* fresh
    if all_of_it and tls.grown > KEEP_BYTES:
        fresh = memory_sink()
        if fresh != NULL:
            openssl.ssl_set_bio(tls.ssl, tls.source, fresh)
            tls.sink = fresh
            tls.grown = 0
            return
    while size > 0:
        size -= <uint64_t> openssl.bio_read(tls.sink, nowhere, <int> size if size < TLS_RECORD else TLS_RECORD)


cdef Status tls_send(Tls* tls, int fd, uint64_t* left) noexcept nogil:
    cdef char* data = NULL
    cdef uint64_t size = <uint64_t> openssl.bio_get_mem_data(tls.sink, &data)
    cdef ssize_t n
    left[0] = size
    if size == 0:
        return OK
    if size > tls.grown:
        tls.grown = size
    n = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT)
    if n < 0:
        return PENDING if errno == EAGAIN or errno == EINTR else CLOSED
    left[0] = size - <uint64_t> n
    consumed(tls, <uint64_t> n, left[0] == 0)
    return PENDING if left[0] else OK


cdef void tls_close(Tls* tls, int fd) noexcept nogil:
    cdef uint64_t left
    if tls.state == TLS_HANDSHAKE:
        handshake_over(tls, TLS_BROKEN)
    elif tls.state != TLS_BROKEN:
        openssl.err_clear_error()
        openssl.ssl_shutdown(tls.ssl)
    tls_send(tls, fd, &left)
    openssl.err_clear_error()
    openssl.ssl_free(tls.ssl)
    bk_add(&tls.server.connections, -1)
    free(tls)


cdef uint32_t tls_certificate(Tls* tls, uint8_t* to, uint32_t room) noexcept nogil:
    cdef X509* certificate = openssl.ssl_get_peer_certificate(tls.ssl)
    cdef BIO* der
    cdef char* data = NULL
    cdef long size = 0
    if certificate == NULL:
        return 0
    der = memory_sink()
    if der != NULL:
        if openssl.i2d_x509_bio(der, certificate) == 1:
            size = openssl.bio_get_mem_data(der, &data)
            if size <= 0 or size > <long> room:
                size = 0
            else:
                memcpy(to, data, <size_t> size)
        openssl.bio_free(der)
    openssl.x509_free(certificate)
    return <uint32_t> size


cdef class TlsServerContext:
    """The OpenSSL context for new handshakes and the counters of all of them. It must outlive the loops that use it.

    `context` is an `OpenSSL.SSL.Context` for servers, completely configured and without Python callbacks.
    """

    def __cinit__(self):
        pthread_mutex_init(&self.server.lock, NULL)

    def __init__(self, context: object, *, handshakes_max: int, timeout_ms: int, per_address_max: int = 1 << 40):
        self.server.handshakes_max = handshakes_max
        self.server.per_address_max = per_address_max
        self.server.timeout_ns = timeout_ms * 1000000
        self.replace(context)

    def replace(self, context: object) -> None:
        """Use `context` for handshakes that begin from now on; existing connections keep theirs. Any thread."""
        cdef void* pointer = context_pointer(context)
        former = self.context
        pthread_mutex_lock(&self.server.lock)
        self.server.context = pointer
        pthread_mutex_unlock(&self.server.lock)
        self.context = context
        del former                   # only now: until here a loop could have taken it from `server.context`

    def stats(self) -> dict[str, int]:
        return {
            "tls_connections": bk_load(&self.server.connections),
            "tls_handshaking": bk_load(&self.server.handshaking),
            "tls_handshakes": bk_load(&self.server.handshakes),
            "tls_handshakes_failed": bk_load(&self.server.failed),
        }
