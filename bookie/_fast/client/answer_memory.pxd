"""Memory that one response is received in and that its entries stay in, as long as a view refers to it, or into which
many of them are copied.

With the GIL. Freed memory is kept for the next responses, at most SPARE_BYTES_MAX in the process: pages that were
used a moment ago are in the processor's caches and need not be zeroed by the kernel.
"""
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t

cdef enum:
    ANSWER_BYTES_MIN = 64 << 10
    SPARE_BYTES_MAX = 12 << 20

cdef class AnswerMemory:
    # Exports a read-only buffer of `capacity` bytes.
    cdef uint8_t* data
    cdef size_t capacity

# Return memory for at least `size` bytes, whose content is undefined. MemoryError if there is none.
cdef AnswerMemory answer_memory(size_t size)
