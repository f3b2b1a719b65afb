"""fdatasync of many files at once: of those that wait together the disk serves many by one flush of its cache.

By the kernel's asynchronous I/O, which lends each waiting file a thread. Any thread; one call at a time in a process.
"""
cdef enum:
    SYNCS_MOST = 64

# Sync `fds`, at most SYNCS_MOST, and wait for all; `results` gets 0 or -errno for each. What the kernel does not take
# (a container's rules, fs.aio-max-nr) is synced one by one.
cdef void sync_many(const int* fds, int* results, int count) noexcept nogil
