"""Columns of a block in one piece of memory: ids, LACs, lengths, edges, sizes, payloads."""
from libc.stdint cimport int32_t, uint8_t

from bookie._fast.client.answer_memory cimport answer_memory
from bookie._fast.wire.payloads cimport check_overhead, payloads_heads, payloads_pack, payloads_size

cdef enum:
    WIDE = sizeof(int64_t)
    NARROW = sizeof(int32_t)
    EDGE_MAX = 0x7FFFFFFF


cdef class PayloadBlock:
    """A block of entries, with the columns that Arrow needs, for up to `bytes_max` payload bytes and `rows_max`
    entries.

    Without `values`, it has no payloads, only the other columns.
    """

    def __cinit__(self, int64_t bytes_max, int64_t rows_max, *, bint values=True):
        if not 0 <= bytes_max <= EDGE_MAX or rows_max < 1:
            raise ValueError(f"a block of {bytes_max} payload bytes and {rows_max} entries: it has at least one entry,"
                             f" and int32 offsets reach {EDGE_MAX}")
        self.bytes_max, self.rows_max, self.values = bytes_max, rows_max, values

    cdef int reserve(self, int64_t rows, int64_t nbytes) except -1:
        """Get memory for a block that begins with so many entries and payload bytes."""
        if nbytes > EDGE_MAX:
            raise ValueError(f"{nbytes} bytes of payloads; int32 offsets reach {EDGE_MAX}: read smaller batches")
        self.rows_max, self.bytes_max = max(rows, self.rows_max), max(nbytes, self.bytes_max)
        self.memory = answer_memory(self.rows_max * (3 * WIDE + 2 * NARROW) + NARROW
                                    + (self.bytes_max if self.values else 0))
        self.pending = self.pending_end = NULL
        return 0

    cdef uint8_t* payloads(self) noexcept:
        """Return where the payloads begin."""
        return self.memory.data + self.rows_max * (3 * WIDE + 2 * NARROW) + NARROW

    cdef uint8_t* place(self, size_t size, size_t* room) except? NULL:
        cdef size_t used
        if not self.values or self.pending != NULL:
            return NULL
        if self.memory is None:
            self.reserve(0, 0)
        used = (self.payloads() - self.memory.data) + <size_t> self.nbytes
        if size > self.memory.capacity - used:
            return NULL
        room[0] = self.memory.capacity - used
        return self.memory.data + used

    cdef object keep(self, const uint8_t* start, const uint8_t* end):
        cdef Py_ssize_t at = start - self.memory.data
        self.pending, self.pending_end = start, end
        return memoryview(self.memory)[at:at + (end - start)]

    def add(self, int64_t first, const uint8_t[::1] run, const int64_t[::1] offsets, int64_t overhead):
        """Copy the entries `first`, first + 1, ... of a run, with `overhead` bytes in front of each payload.

        Return False, and copy nothing, if they do not follow the block's last entry, or do not fit; an empty block
        grows for them. ValueError if a record is shorter than `overhead`, or `overhead` than a header.
        """
        cdef int64_t nbytes = payloads_size(offsets, overhead, run.shape[0])
        cdef int64_t count = offsets.shape[0] - 1
        cdef int64_t k
        cdef bint moves                  # the run is what is pending, or a part of it
        cdef int64_t* ids
        cdef int64_t* lacs
        cdef int64_t* lengths
        cdef int32_t* edges
        cdef int32_t* sizes
        check_overhead(overhead)
        if count == 0:
            return True
        if not self.values:
            nbytes = 0
        moves = (self.pending != NULL and self.pending <= &run[0] + offsets[0]
                 and &run[0] + offsets[count] <= self.pending_end)
        if self.pending != NULL and not moves and self.rows:
            return False                 # it would be written over
        if self.rows == 0:
            if (self.memory is None or count > self.rows_max or nbytes > self.bytes_max
                    or (self.pending != NULL and not moves)):
                self.reserve(count, nbytes)
        elif first != self.end or self.rows + count > self.rows_max or self.nbytes + nbytes > self.bytes_max:
            return False
        ids = <int64_t*> self.memory.data
        lacs = ids + self.rows_max
        lengths = lacs + self.rows_max
        edges = <int32_t*> (lengths + self.rows_max)
        sizes = edges + self.rows_max + 1
        with nogil:
            for k in range(count):
                ids[self.rows + k] = first + k
            payloads_heads(&run[0], &offsets[0], count, overhead, sizes + self.rows, lacs + self.rows,
                           lengths + self.rows)
            if self.values:
                edges[0] = 0
                payloads_pack(&run[0], &offsets[0], count, overhead, <uint8_t*> (sizes + self.rows_max),
                              edges + self.rows)
        if moves and &run[0] + offsets[count] == self.pending_end:
            self.pending = self.pending_end = NULL
        self.end = first + count
        self.rows += count
        self.nbytes += nbytes
        return True

    def take(self):
        """Return the ids, LACs and lengths (int64), sizes (int32), edges (int32, one more) and payloads of all entries,
        and leave the block empty.

        They are views of one piece of memory, which they keep. Without `values`, the last two are None. ValueError if
        the block is empty.
        """
        cdef int64_t rows = self.rows
        cdef int64_t nbytes = self.nbytes
        cdef int64_t edges_at = self.rows_max * 3 * WIDE
        cdef int64_t sizes_at = edges_at + (self.rows_max + 1) * NARROW
        if rows == 0:
            raise ValueError("the block has no entries")
        columns = (
            self.column(0, rows * WIDE),
            self.column(self.rows_max * WIDE, rows * WIDE),
            self.column(self.rows_max * 2 * WIDE, rows * WIDE),
            self.column(sizes_at, rows * NARROW),
            self.column(edges_at, (rows + 1) * NARROW) if self.values else None,
            self.column(sizes_at + self.rows_max * NARROW, nbytes) if self.values else None,
        )
        self.memory = None
        self.pending = self.pending_end = NULL
        self.rows = self.nbytes = 0
        return columns

    cdef object column(self, int64_t at, int64_t nbytes):
        return memoryview(self.memory)[at:at + nbytes]
