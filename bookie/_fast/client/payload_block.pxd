"""A block of entries in columns, as Arrow lays them out, into which the entries of batches are copied as they arrive.

With the GIL; copies release it, so one thread at a time uses a block. A batch is in the processor's caches when it has
just been verified; once several batches are held, the first of them is not. The memory of a block is used again for
later ones (module `client.answer_memory`).
"""
from libc.stdint cimport int64_t

from bookie._fast.client.answer_memory cimport AnswerMemory

cdef class PayloadBlock:
    cdef int64_t bytes_max, rows_max     # room for payload bytes and entries
    cdef readonly bint values            # whether payloads are copied
    cdef readonly int64_t rows, nbytes   # entries in the block, and copied payload bytes
    cdef int64_t end                     # one past the last entry
    cdef AnswerMemory memory             # the columns, one after the other; None before the first entry

    cdef int reserve(self, int64_t rows, int64_t nbytes) except -1
    cdef object column(self, int64_t at, int64_t nbytes)
