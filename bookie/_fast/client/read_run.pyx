"""Responses to many single reads: kept in order of arrival, verified together, then copied in order of their ids."""
from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy

import numpy as np

from bookie._fast.base.cursor cimport load_u32, store_u32
from bookie._fast.base.types cimport LENGTH_PREFIX
from bookie._fast.wire.digest cimport Digest, Digester
from bookie._fast.wire.record cimport entry_holds


cdef class ReadRun:
    """The responses of one bookie to reads of `entries`, an ascending int64 array."""

    def __cinit__(self, int64_t ledger, entries):
        cdef int64_t k
        self.ledger, self.entries, self.ids = ledger, entries, entries
        self.left = self.ids.shape[0]
        for k in range(1, self.left):
            if self.ids[k] <= self.ids[k - 1]:
                raise ValueError(f"entry {self.ids[k]} follows {self.ids[k - 1]}: entries must be ascending")
        self.places = <Place*> calloc(max(self.left, 1), sizeof(Place))
        if self.places == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.places)
        free(self.bytes)

    cdef int64_t place_of(self, int64_t entry) noexcept nogil:
        cdef int64_t low = 0
        cdef int64_t high = self.ids.shape[0]
        cdef int64_t middle
        while low < high:
            middle = (low + high) >> 1
            if self.ids[middle] < entry:
                low = middle + 1
            else:
                high = middle
        return low if low < self.ids.shape[0] and self.ids[low] == entry else -1

    cdef int put(self, int64_t place, int32_t code, const uint8_t* body, size_t size) except -1:
        cdef Place* at = &self.places[place]
        cdef int64_t capacity
        cdef uint8_t* grown
        if at.answered:
            return 0
        if code == 0:
            if self.capacity - self.used < LENGTH_PREFIX + <int64_t> size:
                # Reserve as if all remaining entries had the size of this one; if they are larger, the capacity
                # doubles.
                capacity = max(self.used + self.left * (LENGTH_PREFIX + <int64_t> size), 2 * self.capacity)
                grown = <uint8_t*> realloc(self.bytes, capacity)
                if grown == NULL:
                    raise MemoryError(f"no memory for {capacity} bytes of entries")
                self.bytes, self.capacity = grown, capacity
            store_u32(self.bytes + self.used, <uint32_t> size)
            memcpy(self.bytes + self.used + LENGTH_PREFIX, body, size)
            at.at, at.size = self.used, <int32_t> size
            self.used += LENGTH_PREFIX + <int64_t> size
        at.code, at.answered = code, True
        self.left -= 1
        return 0

    cdef void saw_lac(self, int64_t lac):
        if self.lac is None or lac > self.lac:
            self.lac = lac

    def answer(self, int64_t entry, int32_t code, const uint8_t[::1] stored=None, lac=None):
        """Store one response: code 0 with the entry as stored, or an error code. ValueError if it was not requested.
        """
        cdef int64_t place = self.place_of(entry)
        cdef uint8_t nothing = 0
        if place < 0:
            raise ValueError(f"entry {entry} was not requested")
        if lac is not None:
            self.saw_lac(lac)
        if code == 0 and stored is None:
            self.put(place, NO_ENTRY, NULL, 0)
        else:
            self.put(place, code, &stored[0] if code == 0 and stored.shape[0] else &nothing,
                     stored.shape[0] if code == 0 else 0)

    def failures(self):
        """Return (entry, code) of all responses whose code is not 0."""
        return [(self.ids[k], self.places[k].code) for k in range(self.ids.shape[0])
                if self.places[k].answered and self.places[k].code]

    def stored(self, int64_t entry):
        """Return the entry as received, or None."""
        cdef int64_t place = self.place_of(entry)
        cdef Place* at = &self.places[place]
        if place < 0 or not at.answered or at.code:
            return None
        return (<const char*> self.bytes)[at.at + LENGTH_PREFIX:at.at + LENGTH_PREFIX + at.size]


cdef class ReadRange:
    """Entries `first` to first + count - 1 of a ledger, as far as valid ones were found."""

    def __cinit__(self, int64_t ledger, int64_t first, int64_t count):
        self.ledger, self.first, self.count = ledger, first, count
        self.runs = []
        self.records = <const uint8_t**> calloc(max(count, 1), sizeof(uint8_t*))
        if self.records == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.records)

    def __contains__(self, int64_t entry):
        return 0 <= entry - self.first < self.count and self.records[entry - self.first] != NULL

    def missing(self, const int64_t[::1] entries):
        """Return those of `entries` that were not found yet. ValueError if one lies outside the range."""
        cdef int64_t k, place
        cdef int64_t left = 0
        found = np.empty(entries.shape[0], dtype=np.int64)
        cdef int64_t[::1] out = found
        for k in range(entries.shape[0]):
            place = entries[k] - self.first
            if place < 0 or place >= self.count:
                raise ValueError(f"entry {entries[k]} is not one of the {self.count} from {self.first} on")
            if self.records[place] == NULL:
                out[left] = entries[k]
                left += 1
        return found[:left]

    def take(self, ReadRun run, Digester digester):
        """Take the valid entries that are not there yet, and return how many. The run must get no more responses."""
        cdef const Digest* digest = &digester.digest
        cdef int64_t before = self.found
        cdef int64_t k, place
        cdef const uint8_t* record
        if run.ledger != self.ledger:
            raise ValueError(f"the responses are of ledger {run.ledger}, not {self.ledger}")
        with nogil:
            for k in range(run.ids.shape[0]):
                place = run.ids[k] - self.first
                if not run.places[k].answered or run.places[k].code or place < 0 or place >= self.count:
                    continue
                record = run.bytes + run.places[k].at
                if self.records[place] == NULL and entry_holds(digest, record + LENGTH_PREFIX, run.places[k].size,
                                                               self.ledger, run.ids[k]):
                    self.records[place] = record
                    self.nbytes += LENGTH_PREFIX + run.places[k].size
                    self.found += 1
        if self.found > before:
            self.runs.append(run)
        return self.found - before

    def run(self, int64_t count):
        """Return the first `count` entries as a run of `u32 length | entry` (uint8 array), and its int64 offsets.

        ValueError if one of them is missing.
        """
        cdef int64_t k, size
        cdef uint8_t[::1] out
        cdef int64_t[::1] edges
        if count < 0 or count > self.count:
            raise ValueError(f"count is {count}; the range has {self.count} entries")
        offsets = np.zeros(count + 1, dtype=np.int64)
        edges = offsets
        for k in range(count):
            if self.records[k] == NULL:
                raise ValueError(f"entry {self.first + k} is missing")
            edges[k + 1] = edges[k] + LENGTH_PREFIX + load_u32(self.records[k])
        run = np.empty(edges[count], dtype=np.uint8)
        if count:
            out = run
            with nogil:
                for k in range(count):
                    size = edges[k + 1] - edges[k]
                    memcpy(&out[0] + edges[k], self.records[k], size)
        return run, offsets
