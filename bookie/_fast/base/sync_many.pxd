"""fdatasync of many files at once, so that the disk serves many of them with one flush of its cache.

It uses the kernel's asynchronous I/O, which runs each waiting sync in a thread of the kernel. Any thread; calls of
several threads do not wait for each other.
"""
cdef enum:
    SYNCS_MOST = 64

# Sync `fds`, at most SYNCS_MOST, and wait for all; `results` gets 0 or -errno for each. Files that the kernel does
# not accept (a container's rules, fs.aio-max-nr) are synced one by one.
cdef void sync_many(const int* fds, int* results, int count) noexcept nogil
