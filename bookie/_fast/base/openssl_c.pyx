"""Resolves OpenSSL's C functions from the `cryptography` package. The table of functions is its only state."""
import importlib

from libc.stdint cimport uintptr_t

cdef struct Symbol:
    const char* name
    const char* type             # the type that the cffi binding must declare
    void** target

REMEDY = "install the binary packages cryptography>=45 and pyopenssl>=25.2 (pip install 'pyopenssl>=25.2')"

cdef bint loaded = False
binding = None


cdef object open_binding():
    """Import the module with OpenSSL's functions, and pyOpenSSL, which is needed to create contexts."""
    try:
        importlib.import_module("OpenSSL.SSL")
        from cryptography.hazmat.bindings._rust import _openssl
    except ImportError as error:
        raise ImportError(f"OpenSSL cannot be loaded: {error}; {REMEDY}") from error
    if not hasattr(_openssl, "lib") or not hasattr(_openssl, "ffi"):
        raise ImportError(f"the cryptography package does not expose OpenSSL's functions; {REMEDY}")
    return _openssl


cdef int resolve(object module) except -1:
    cdef Symbol[22] symbols = [
        Symbol(b"SSL_new", b"SSL *(*)(SSL_CTX *)", <void**> &openssl.ssl_new),
        Symbol(b"SSL_free", b"void(*)(SSL *)", <void**> &openssl.ssl_free),
        Symbol(b"SSL_set_bio", b"void(*)(SSL *, BIO *, BIO *)", <void**> &openssl.ssl_set_bio),
        Symbol(b"SSL_set_accept_state", b"void(*)(SSL *)", <void**> &openssl.ssl_set_accept_state),
        Symbol(b"SSL_set_mode", b"long(*)(SSL *, long)", <void**> &openssl.ssl_set_mode),
        Symbol(b"SSL_do_handshake", b"int(*)(SSL *)", <void**> &openssl.ssl_do_handshake),
        Symbol(b"SSL_read", b"int(*)(SSL *, void *, int)", <void**> &openssl.ssl_read),
        Symbol(b"SSL_write", b"int(*)(SSL *, void *, int)", <void**> &openssl.ssl_write),
        Symbol(b"SSL_pending", b"int(*)(SSL *)", <void**> &openssl.ssl_pending),
        Symbol(b"SSL_shutdown", b"int(*)(SSL *)", <void**> &openssl.ssl_shutdown),
        Symbol(b"SSL_get_error", b"int(*)(SSL *, int)", <void**> &openssl.ssl_get_error),
        Symbol(b"SSL_get_peer_certificate", b"X509 *(*)(SSL *)", <void**> &openssl.ssl_get_peer_certificate),
        Symbol(b"X509_free", b"void(*)(X509 *)", <void**> &openssl.x509_free),
        Symbol(b"i2d_X509_bio", b"int(*)(BIO *, X509 *)", <void**> &openssl.i2d_x509_bio),
        Symbol(b"BIO_new", b"BIO *(*)(BIO_METHOD *)", <void**> &openssl.bio_new),
        Symbol(b"BIO_new_mem_buf", b"BIO *(*)(void *, int)", <void**> &openssl.bio_new_mem_buf),
        Symbol(b"BIO_free", b"int(*)(BIO *)", <void**> &openssl.bio_free),
        Symbol(b"BIO_s_mem", b"BIO_METHOD *(*)()", <void**> &openssl.bio_s_mem),
        Symbol(b"BIO_set_mem_eof_return", b"long(*)(BIO *, int)", <void**> &openssl.bio_set_mem_eof_return),
        Symbol(b"BIO_get_mem_data", b"long(*)(BIO *, char * *)", <void**> &openssl.bio_get_mem_data),
        Symbol(b"BIO_read", b"int(*)(BIO *, void *, int)", <void**> &openssl.bio_read),
        Symbol(b"ERR_clear_error", b"void(*)()", <void**> &openssl.err_clear_error),
    ]
    cdef int i
    lib, ffi = module.lib, module.ffi
    for i in range(22):
        name = symbols[i].name.decode()
        wanted = symbols[i].type.decode()
        try:
            address = ffi.addressof(lib, name)
        except AttributeError:
            raise ImportError(f"the cryptography package does not expose {name}; {REMEDY}") from None
        if ffi.typeof(address).cname != wanted:
            found = ffi.typeof(address).cname
            raise ImportError(f"{name} of the cryptography package is {found}, not {wanted}; {REMEDY}")
        symbols[i].target[0] = <void*> <uintptr_t> int(ffi.cast("uintptr_t", address))
    for name, value in (("SSL_ERROR_WANT_READ", SSL_ERROR_WANT_READ),
                        ("SSL_ERROR_WANT_WRITE", SSL_ERROR_WANT_WRITE),
                        ("SSL_ERROR_ZERO_RETURN", SSL_ERROR_ZERO_RETURN),
                        ("SSL_MODE_AUTO_RETRY", SSL_MODE_AUTO_RETRY),
                        ("SSL_MODE_RELEASE_BUFFERS", SSL_MODE_RELEASE_BUFFERS)):
        found = getattr(lib, name, None)
        if found != value:
            raise ImportError(f"{name} of the cryptography package is {found}, not {value}; {REMEDY}")
    return 0


cdef int load() except -1:
    global loaded, binding
    if not loaded:
        binding = open_binding()
        resolve(binding)
        loaded = True
    return 0


cdef SSL_CTX* context_pointer(object context) except NULL:
    load()
    return <SSL_CTX*> <uintptr_t> int(binding.ffi.cast("uintptr_t", context._context))


cdef SSL* connection_pointer(object connection) except NULL:
    load()
    return <SSL*> <uintptr_t> int(binding.ffi.cast("uintptr_t", connection._ssl))


def version() -> str:
    """Return OpenSSL's version text. Raises ImportError if OpenSSL cannot be loaded."""
    load()
    return binding.ffi.string(binding.lib.OpenSSL_version(binding.lib.OPENSSL_VERSION)).decode()
