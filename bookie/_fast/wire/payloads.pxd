"""The payloads of a run of verified entries, for readers in Python and Arrow. Any thread; copies release the GIL.

A record of the run begins with `overhead` bytes in front of its payload. A view of a payload keeps the run's memory
alive.
"""
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef class Entry:
    # One entry of a batch.
    cdef readonly int64_t id
    cdef readonly object data            # memoryview of the payload

cdef class EntryIterator:
    # Iterates over the entries first, first + 1, ... of one run.
    cdef object run                      # memoryview
    cdef const int64_t[::1] offsets      # of the n records, n + 1 numbers
    cdef int64_t overhead                # bytes of a record in front of its payload
    cdef int64_t first, at, count
    cdef void* start                     # where the run begins
    cdef PyObject* last[2]               # the last entries returned, by even and odd index; NULL, or a reference

# Return the total size of the payloads in a run of `size` bytes. ValueError if the offsets do not fit the run, or a
# record is shorter than `overhead`.
cdef int64_t payloads_size(const int64_t[::1] offsets, int64_t overhead, int64_t size) except -1

# ValueError if there is no room for an entry's header in the bytes in front of a payload.
cdef int check_overhead(int64_t overhead) except -1

# Copy `count` payloads to `values`, one after the other, and write where each ends; the caller has set edges[0] to the
# place of the first.
cdef void payloads_pack(const uint8_t* run, const int64_t* offsets, int64_t count, int64_t overhead, uint8_t* values,
                        int32_t* edges) noexcept nogil

# Write the payload size of each entry, and the LAC and the length in its header. Each record has at least `overhead`
# bytes.
cdef void payloads_heads(const uint8_t* run, const int64_t* offsets, int64_t count, int64_t overhead, int32_t* sizes,
                         int64_t* lacs, int64_t* lengths) noexcept nogil
