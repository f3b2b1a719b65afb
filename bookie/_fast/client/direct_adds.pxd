"""Adds of one ledger by the calling thread, one at a time, over direct connections to all bookies of the write set.

The entry is sealed in the ledger's window like any other and stays there until it is acknowledged, so entry ids, LAC
and length are those of the window. While it is *claimed*, it is not among those that the event loop sends. The claim
ends with `settle`: if an ack quorum has stored the entry and it is the only one that is pending, the calling thread
acknowledges it; otherwise the event loop takes over, and sends the same entry again unless it is stored already. The
bookies do not mind, since an entry that they have is stored again.

Responses beyond the ack quorum are *owed*: their connections are kept until `collect` has received them, which the next
add and the event loop call. A response that is late, bad or lost becomes a *doubt*: the event loop sends the entry to
this bookie again, and what that results in is handled as for any add.

Any thread; every call holds the GIL, except while it waits for bookies. At most one entry is claimed at a time, because
only an add that finds no other one pending begins.
"""
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint64_t

from bookie._fast.client.direct_link cimport DirectLink
from bookie._fast.client.write_window cimport Add, WriteWindow

cdef enum:
    PAYLOAD_BYTES_MAX = 256 << 10    # larger entries are sent to one bookie after the other for too long
    ADD_OVERHEAD = 128               # bytes of a request besides its entry, at most

cdef class Owed:
    # A response that is due after its entry was acknowledged.
    cdef DirectLink link
    cdef object pool             # takes the link back
    cdef int64_t entry
    cdef int64_t index           # of the bookie in the ensemble
    cdef bytes record            # u32 length | entry
    cdef int64_t until_ns        # it is late from this time on

cdef class DirectAdder:
    cdef WriteWindow window
    cdef bytes key
    cdef object take_over        # called after the event loop has got something to do; it may be called once too often
    cdef object waiting          # callers that wait for room in the window; it is true if there are any
    cdef int64_t claimed         # the entry, or -1
    cdef int64_t changes         # of the window, when the entry was claimed
    cdef list owed               # of Owed
    cdef list doubts             # of Owed
    cdef readonly bint watched   # the event loop was told to call `collect`
    cdef readonly int64_t doubted        # responses that became doubts so far

    cdef int hand_over(self) except -1
    cdef bint end_claim(self, uint64_t acked) except -1
    cdef size_t frame(self, bint v3, uint64_t number, int64_t size, uint8_t* out) noexcept
    cdef uint64_t stored(self, list links, int64_t until_ns) except? 0
    cdef uint64_t quorum(self, list links, int64_t until_ns) except? 0
    cdef bint answered(self, DirectLink link) except -1
    cdef int owe(self, list links, list pools, uint64_t acked, int64_t until_ns) except -1
    cdef bint doubtful(self, Owed one, bint* due) except -1
