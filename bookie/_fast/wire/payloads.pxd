"""The payloads of a run of verified entries, as a reader takes them. Any thread; the GIL is dropped for copies.

Payload k of a run lies at [starts[k], ends[k]); a view of it keeps the run's memory alive.
"""
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef class Entry:
    # One entry of a batch.
    cdef readonly int64_t id
    cdef readonly object data            # memoryview of the payload

cdef class EntryIterator:
    # Entries first, first + 1, … of one run.
    cdef object run                      # memoryview
    cdef const int64_t[::1] offsets      # of the records, n + 1
    cdef int64_t overhead                # bytes of a record in front of its payload
    cdef int64_t first, at, count
    cdef void* start                     # of the run
    cdef PyObject* last[2]               # entries handed out last, by even and odd place; NULL, or a reference

# Copy `count` payloads side by side to `values` and write where each ends; edges[0] is the caller's 0.
cdef void payloads_pack(const uint8_t* run, const int64_t* offsets, int64_t count, int64_t overhead, uint8_t* values,
                        int32_t* edges) noexcept nogil

# The size of each payload, and what is in front of it in the entry's header. Records have `overhead` bytes at least.
cdef void payloads_heads(const uint8_t* run, const int64_t* offsets, int64_t count, int64_t overhead, int32_t* sizes,
                         int64_t* lacs, int64_t* lengths) noexcept nogil
