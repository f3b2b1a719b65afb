"""Entries that are read one by one: the responses as they arrive (`ReadRun`), and a range put together (`ReadRange`).

No lock: one event loop owns both. Responses are copied on arrival, so no receive buffer is kept. Memory: the entries
as stored, and 24 bytes for each entry requested; freed with the object.
"""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef enum:
    # Codes for responses that are unusable; the bookie's own codes are positive.
    NO_ENTRY = -1                # the response reports success and has no entry
    MALFORMED = -2
    TOO_LONG = -3

cdef struct Place:
    int64_t at                   # offset of the record in `bytes`
    int32_t size                 # of the entry
    int32_t code                 # 0: the entry is there
    bint answered

cdef class ReadRun:
    cdef readonly int64_t ledger
    cdef readonly object entries         # int64 array, ascending: the entries requested
    cdef readonly int64_t left           # entries without a response
    cdef readonly object lac             # the highest LAC in a response, or None
    cdef const int64_t[::1] ids
    cdef Place* places
    cdef uint8_t* bytes                  # records, `u32 length | entry`, in order of arrival
    cdef int64_t used, capacity

    # Return the place of an entry, or -1 if it was not requested.
    cdef int64_t place_of(self, int64_t entry) noexcept nogil
    # Store the response to a place; only the first one counts. `body` is copied, and only used if `code` is 0.
    cdef int put(self, int64_t place, int32_t code, const uint8_t* body, size_t size) except -1
    cdef void saw_lac(self, int64_t lac)

cdef class ReadRange:
    cdef readonly int64_t ledger, first, count
    cdef readonly int64_t found          # entries with a valid digest
    cdef readonly int64_t nbytes         # of their records
    cdef const uint8_t** records         # NULL: not found yet
    cdef list runs                       # the ReadRuns that hold the records
