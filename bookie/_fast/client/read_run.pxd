"""Entries read one by one, as answers bring them (`ReadRun`), and those of a range put together (`ReadRange`).

No lock: one event loop owns both. Answers are copied when they come, so no receive buffer is held. Memory: the entries
as stored, and 24 bytes for each that was asked for; freed with the object.
"""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef enum:
    # Codes of answers that carry none of the bookie's.
    NO_ENTRY = -1                # in an answer that says that all is well
    MALFORMED = -2
    TOO_LONG = -3

cdef struct Place:
    int64_t at                   # of the record in `bytes`
    int32_t size                 # of the entry
    int32_t code                 # 0: it is there
    bint answered

cdef class ReadRun:
    cdef readonly int64_t ledger
    cdef readonly object entries         # int64 array, ascending: what was asked for
    cdef readonly int64_t left           # unanswered
    cdef readonly object lac             # the highest that answers told, or None
    cdef const int64_t[::1] ids
    cdef Place* places
    cdef uint8_t* bytes                  # records, `u32 length | entry`, in the order of their arrival
    cdef int64_t used, capacity

    # The place of an entry, -1 when it was not asked for.
    cdef int64_t place_of(self, int64_t entry) noexcept nogil
    # The first answer to a place counts; `body` is looked at where `code` is 0, and copied.
    cdef int put(self, int64_t place, int32_t code, const uint8_t* body, size_t size) except -1
    cdef void saw_lac(self, int64_t lac)

cdef class ReadRange:
    cdef readonly int64_t ledger, first, count
    cdef readonly int64_t found          # entries whose digest holds
    cdef readonly int64_t nbytes         # of their records
    cdef const uint8_t** records         # NULL: not found
    cdef list runs                       # that records lie in
