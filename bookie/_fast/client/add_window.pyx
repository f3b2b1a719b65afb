"""The window of one stream of adds, from sending its entries to their acknowledgement."""
from libc.stdint cimport uint64_t

import numpy as np

from bookie._fast.base.sync cimport now_ns
from bookie._fast.wire.proto cimport leading_zeros


cdef inline int64_t bucket_of(int64_t ns) noexcept nogil:
    """Return the histogram bucket of a duration: linear below 32 ns, then 32 steps for each doubling."""
    cdef int64_t doublings = 58 - leading_zeros(<uint64_t> ns | (2 * HISTOGRAM_STEPS - 1))
    return doublings * HISTOGRAM_STEPS + (ns >> doublings)


cdef class AddWindow:
    """The adds in flight of one stream, at most `capacity`; `sender` is its number on its connection.

    ValueError if `first` or `capacity` is invalid.
    """

    def __init__(self, int32_t sender, int64_t ledger, int64_t first, int64_t capacity):
        if first < 0:
            raise ValueError(f"first entry is {first}; entry ids start at 0")
        if capacity < 1:
            raise ValueError(f"outstanding is {capacity}; allow at least 1 entry in flight")
        places = 1 << (capacity - 1).bit_length()
        self.sender = sender
        self.ledger = ledger
        self.base = self.end = first
        self.capacity = capacity
        self.error_entry = -1
        self.mask = places - 1
        self.sent_ns = np.zeros(places, dtype=np.int64)
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
            self.sent_ns[id & self.mask] = now
        self.end += count

    cdef void answer(self, int64_t entry, int32_t code, int64_t now) noexcept nogil:
        cdef int64_t place = entry & self.mask
        if entry < self.base or entry >= self.end or self.sent_ns[place] == 0:
            return
        if code == 0:
            self.histogram[bucket_of(now - self.sent_ns[place])] += 1
        elif self.error_entry < 0 or entry < self.error_entry:
            self.error_code = code
            self.error_entry = entry
        self.sent_ns[place] = 0

    cdef void advance(self) noexcept nogil:
        while self.base < self.end and self.sent_ns[self.base & self.mask] == 0:
            self.base += 1

    def acknowledge(self, const int64_t[::1] entries, const int32_t[::1] codes):
        """Record responses to these entries, with their codes. Entries that are not in flight are ignored."""
        cdef int64_t now = now_ns()
        cdef int64_t k
        for k in range(min(entries.shape[0], codes.shape[0])):
            self.answer(entries[k], codes[k], now)
        self.advance()


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
