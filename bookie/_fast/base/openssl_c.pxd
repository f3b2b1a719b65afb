"""OpenSSL's C functions, taken from the `cryptography` package so that a process has one copy of OpenSSL.

They are resolved by the first call of `load`, and can be called without the GIL. OpenSSL's own rules hold: an SSL is
used by one thread at a time, an SSL_CTX by any number, and each thread has its own error queue. A context whose
connections are served here must have no Python callbacks, because they would take the GIL.
"""
ctypedef void SSL
ctypedef void SSL_CTX
ctypedef void BIO
ctypedef void BIO_METHOD
ctypedef void X509

cdef struct OpenSSL:
    SSL* (*ssl_new)(SSL_CTX* context) noexcept nogil            # adds a reference to the context
    void (*ssl_free)(SSL* ssl) noexcept nogil                   # also frees its BIOs
    void (*ssl_set_bio)(SSL* ssl, BIO* source, BIO* sink) noexcept nogil  # takes ownership of those that changed
    void (*ssl_set_accept_state)(SSL* ssl) noexcept nogil
    long (*ssl_set_mode)(SSL* ssl, long mode) noexcept nogil
    int (*ssl_do_handshake)(SSL* ssl) noexcept nogil
    int (*ssl_read)(SSL* ssl, void* to, int size) noexcept nogil
    int (*ssl_write)(SSL* ssl, void* data, int size) noexcept nogil
    int (*ssl_pending)(SSL* ssl) noexcept nogil                 # decrypted bytes that can be read at once
    int (*ssl_shutdown)(SSL* ssl) noexcept nogil
    int (*ssl_get_error)(SSL* ssl, int result) noexcept nogil
    X509* (*ssl_get_peer_certificate)(SSL* ssl) noexcept nogil  # adds a reference
    void (*x509_free)(X509* certificate) noexcept nogil
    int (*i2d_x509_bio)(BIO* to, X509* certificate) noexcept nogil
    BIO* (*bio_new)(BIO_METHOD* kind) noexcept nogil
    BIO* (*bio_new_mem_buf)(void* data, int size) noexcept nogil  # reads `data` in place
    int (*bio_free)(BIO* bio) noexcept nogil
    BIO_METHOD* (*bio_s_mem)() noexcept nogil
    long (*bio_set_mem_eof_return)(BIO* bio, int value) noexcept nogil
    long (*bio_get_mem_data)(BIO* bio, char** data) noexcept nogil
    int (*bio_read)(BIO* bio, void* to, int size) noexcept nogil
    void (*err_clear_error)() noexcept nogil

cdef enum:
    SSL_ERROR_WANT_READ = 2
    SSL_ERROR_WANT_WRITE = 3
    SSL_ERROR_ZERO_RETURN = 6
    SSL_MODE_AUTO_RETRY = 0x04   # SSL_read skips records without application data
    SSL_MODE_RELEASE_BUFFERS = 0x10

cdef OpenSSL openssl

# Resolve the functions once. Raises ImportError, which names what is missing and what to install.
cdef int load() except -1
# Return the SSL_CTX of an `OpenSSL.SSL.Context`, which must outlive its use.
cdef SSL_CTX* context_pointer(object context) except NULL
# Return the SSL of an `OpenSSL.SSL.Connection`, which must outlive its use.
cdef SSL* connection_pointer(object connection) except NULL
