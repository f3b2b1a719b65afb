"""Responses to one stream of adds, which the channel's receiving thread passes as tables."""
import numpy as np

from bookie._fast.base.sync cimport now_ns
from bookie._fast.wire.request cimport ADD_ENTRY
from bookie._fast.wire.v2 cimport OP_ADD


cdef inline int64_t bucket_of(int64_t ns) noexcept nogil:
    """Return the histogram bucket of a duration: linear below 32 ns, then 32 steps for each doubling."""
    cdef int64_t doublings = 0
    while ns >= 2 * HISTOGRAM_STEPS:
        ns >>= 1
        doublings += 1
    return doublings * HISTOGRAM_STEPS + ns


cdef class AddWindow:
    """The adds in flight of one stream, at most `capacity`.

    In V3, entry e is sent as transaction `request_base` + e; None means V2. ValueError if `first` or `capacity` is
    invalid.
    """

    def __init__(self, int64_t ledger, int64_t first, int64_t capacity, request_base=None):
        if first < 0:
            raise ValueError(f"first entry is {first}; entry ids start at 0")
        if capacity < 1:
            raise ValueError(f"outstanding is {capacity}; allow at least 1 entry in flight")
        self.ledger = ledger
        self.base = self.end = first
        self.capacity = capacity
        self.op = OP_ADD if request_base is None else ADD_ENTRY
        self.by_request = request_base is not None
        self.request_base = request_base or 0
        self.error_entry = -1
        self.sent_ns = np.zeros(capacity, dtype=np.int64)
        self.histogram = np.zeros(HISTOGRAM_BUCKETS, dtype=np.int64)

    def __str__(self):
        return f"adds of ledger {self.ledger}, entry {self.end} and on"

    @property
    def room(self):
        """The number of ids that may be sent now."""
        return self.capacity - (self.end - self.base)

    @property
    def confirmed(self):
        """Every id of the stream below this one is acknowledged."""
        return self.base if self.error_entry < 0 else min(self.base, self.error_entry)

    @property
    def latency_counts(self):
        """A copy of the latency histogram, for `percentile_ns`."""
        return np.array(self.histogram)

    def sent(self, int64_t count):
        """Record that the next `count` ids are sent now. ValueError beyond `room`."""
        cdef int64_t id
        cdef int64_t now = now_ns()
        if count < 0 or count > self.capacity - (self.end - self.base):
            raise ValueError(f"{count} entries do not fit into the {self.room} free places of the window")
        for id in range(self.end, self.end + count):
            self.sent_ns[id % self.capacity] = now
        self.end += count

    cdef int64_t take(self, Response* rows, int64_t count, int64_t now) noexcept nogil:
        cdef int64_t k, entry, place
        cdef int64_t taken = 0
        for k in range(count):
            if rows[k].op != self.op or (rows[k].ledger != self.ledger and not self.by_request):
                continue
            entry = rows[k].request_id - self.request_base if self.by_request else rows[k].entry
            if entry < self.base or entry >= self.end:
                continue
            place = entry % self.capacity
            if self.sent_ns[place] == 0:
                continue
            rows[k].op = 0
            taken += 1
            if rows[k].code == 0:
                self.histogram[bucket_of(now - self.sent_ns[place])] += 1
            elif self.error_entry < 0 or entry < self.error_entry:
                self.error_code = rows[k].code
                self.error_entry = entry
            self.sent_ns[place] = 0
        while self.base < self.end and self.sent_ns[self.base % self.capacity] == 0:
            self.base += 1
        return taken

    def acknowledge(self, rows, int64_t count):
        """Take this stream's responses out of the first `count` rows by setting their op to 0; return how many there
        were.
        """
        cdef uint8_t[::1] table = rows.view(np.uint8)
        cdef int64_t now = now_ns()
        cdef int64_t taken
        if count > table.shape[0] // <int64_t> sizeof(Response):
            raise ValueError(f"count is {count}; the table has fewer rows")
        if count <= 0:
            return 0
        with nogil:
            taken = self.take(<Response*> &table[0], count, now)
        return taken


def percentile_ns(const int64_t[::1] counts, double fraction):
    """Return an upper bound, within 3 %, below which `fraction` of the latencies lie; 0 if the histogram is empty."""
    cdef int64_t total = 0
    cdef int64_t seen = 0
    cdef int64_t k, doublings
    for k in range(counts.shape[0]):
        total += counts[k]
    for k in range(counts.shape[0]):
        seen += counts[k]
        if counts[k] and seen >= fraction * total:
            doublings = max(k // HISTOGRAM_STEPS - 1, 0)
            return (k - doublings * HISTOGRAM_STEPS + 1) << doublings
    return 0
