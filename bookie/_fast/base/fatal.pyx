"""The latch of the first unrecoverable failure: set once, never cleared while the process lives."""
from libc.stdint cimport int64_t
from libc.string cimport strncpy

from bookie._fast.base.sync cimport (
    bk_load,
    bk_store,
    cond_init,
    cond_wait_until,
    now_ns,
    pthread_cond_broadcast,
    pthread_cond_t,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_t,
    pthread_mutex_unlock,
)

cdef pthread_mutex_t lock
cdef pthread_cond_t raised
cdef int64_t latched = 0
cdef int latched_error = 0
cdef char latched_what[256]

pthread_mutex_init(&lock, NULL)
cond_init(&raised)


cdef void fatal_set(const char* what, int error) noexcept nogil:
    pthread_mutex_lock(&lock)
    if not latched:
        strncpy(latched_what, what, sizeof(latched_what) - 1)
        (&latched_error)[0] = error
        bk_store(&latched, 1)
        pthread_cond_broadcast(&raised)
    pthread_mutex_unlock(&lock)


cdef bint fatal_is_set() noexcept nogil:
    return bk_load(&latched) != 0


def wait(double timeout_s):
    """Wait up to `timeout_s` seconds for the latch without holding the GIL; return (what, errno), or None if not set.
    """
    cdef int64_t deadline = now_ns() + <int64_t> (timeout_s * 1e9)
    with nogil:
        pthread_mutex_lock(&lock)
        while not latched:
            if cond_wait_until(&raised, &lock, deadline):
                break
        pthread_mutex_unlock(&lock)
    if not latched:
        return None
    return latched_what.decode("utf-8", "replace"), latched_error


def trip(what: str, error: int = 0) -> None:
    """Set the latch from Python, for example after a failed cookie write or when an essential thread has died."""
    encoded = what.encode()[:250]
    cdef const char* text = encoded
    cdef int code = error
    with nogil:
        fatal_set(text, code)
