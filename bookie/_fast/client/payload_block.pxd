"""A block of entries in columns, as Arrow lays them out, into which the entries of batches are copied as they arrive.

With the GIL; copies release it, so one thread at a time uses a block. A batch is in the processor's caches when it has
just been verified; once several batches are held, the first of them is not. The memory of a block is used again for
later ones (module `client.answer_memory`).

A response may even be received where its payloads will be, behind those that the block has (`place`), so that they only
move up a little when they are added. Then its bytes are *pending*: nothing else is written there before.
"""
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t

from bookie._fast.client.answer_memory cimport AnswerMemory

cdef class PayloadBlock:
    cdef int64_t bytes_max, rows_max     # room for payload bytes and entries
    cdef readonly bint values            # whether payloads are copied
    cdef readonly int64_t rows, nbytes   # entries in the block, and copied payload bytes
    cdef int64_t end                     # one past the last entry
    cdef AnswerMemory memory             # the columns, one after the other; None before the first entry
    cdef const uint8_t* pending          # records in `memory` that are still to be added, or NULL
    cdef const uint8_t* pending_end

    # Return where `size` bytes can be received behind the payloads, and in `room` how many; NULL if they should be
    # received elsewhere. The memory stays the block's, and nothing may be left there once the block is used again,
    # except for what `keep` is called with.
    cdef uint8_t* place(self, size_t size, size_t* room) except? NULL
    # Keep records that were received in `place` until they were added. Return them as a buffer.
    cdef object keep(self, const uint8_t* start, const uint8_t* end)
    cdef uint8_t* payloads(self) noexcept
    cdef int reserve(self, int64_t rows, int64_t nbytes) except -1
    cdef object column(self, int64_t at, int64_t nbytes)
