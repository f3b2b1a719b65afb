"""A small table of readers, searched for the one that a miss belongs to."""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset


cdef inline bint is_short_step(const Reader* reader, const Miss* miss) noexcept nogil:
    """Return whether the entry lies a short step behind what the reader has had, or right behind it."""
    cdef uint64_t most = <uint64_t> STEP_REQUESTS * miss.requested
    if miss.entry < reader.end or <uint64_t> (miss.entry - reader.end) > min(most, <uint64_t> miss.entries_max):
        return False
    if miss.log_id != reader.log_id:
        return True              # the ledger goes on in another entry log
    return miss.offset >= reader.log_end and miss.offset - reader.log_end <= miss.bytes_max


cdef Reader* reader_of(Readers* readers, const Miss* miss, bint* forward) noexcept nogil:
    """Return the reader that this miss belongs to, or the place for a new one."""
    cdef Reader* found = NULL
    cdef Reader* oldest = &readers.known[0]
    cdef Reader* again = NULL
    cdef Reader* reader
    cdef uint32_t i
    for i in range(READERS_KNOWN):
        reader = &readers.known[i]
        if reader.turn and reader.ledger == miss.ledger:
            if is_short_step(reader, miss) and (found == NULL or reader.end > found.end):
                found = reader
            elif reader.first <= miss.entry < reader.end:
                again = reader   # what was read for it has left the cache: it begins anew
        if reader.turn < oldest.turn:
            oldest = reader
    forward[0] = found != NULL
    if found != NULL:
        return found
    return again if again != NULL else oldest


cdef uint32_t readers_advance(Readers* readers, const Miss* miss, int64_t* end) noexcept nogil:
    cdef bint forward
    cdef Reader* reader = reader_of(readers, miss, &forward)
    cdef uint32_t stretch = 0
    if forward:
        reader.stretch = <uint32_t> min(miss.entry - reader.first, <int64_t> miss.entries_max)
        reader.steps += 1
        if reader.steps >= STEPS_CERTAIN:
            stretch = reader.stretch
            end[0] = reader.end
    else:
        reader.ledger = miss.ledger
        reader.stretch = 0
        # Who begins a ledger is taken to go forward.
        reader.steps = STEPS_CERTAIN if miss.entry == 0 else 0
    readers.turn += 1
    reader.turn = readers.turn
    reader.first = miss.entry
    reader.end = miss.entry + 1
    reader.log_id = miss.log_id
    reader.log_end = miss.offset
    return stretch


cdef void readers_brought(Readers* readers, int64_t ledger, int64_t first, int64_t last,
                          uint64_t log_end) noexcept nogil:
    cdef Reader* reader
    cdef uint32_t i
    for i in range(READERS_KNOWN):
        reader = &readers.known[i]
        if reader.turn and reader.ledger == ledger and reader.first == first:
            reader.end = last + 1
            reader.log_end = log_end
            return


cdef class KnownReaders:
    """The readers of one shard on their own, for tests."""
    cdef Readers readers

    def __cinit__(self):
        memset(&self.readers, 0, sizeof(Readers))

    def advance(self, int64_t ledger, int64_t entry, *, uint32_t requested=1, uint32_t log_id=0, uint64_t offset,
                uint32_t entries_max=1000, uint64_t bytes_max=1 << 22) -> tuple[int, int]:
        """Note a disk read. Return the reader's stretch and where its disk read before ended; (0, -1) if unknown."""
        cdef Miss miss
        cdef int64_t end = -1
        miss.ledger = ledger
        miss.entry = entry
        miss.log_id = log_id
        miss.offset = offset
        miss.requested = requested
        miss.entries_max = entries_max
        miss.bytes_max = bytes_max
        stretch = readers_advance(&self.readers, &miss, &end)
        return stretch, end

    def brought(self, int64_t ledger, int64_t first, int64_t last, uint64_t log_end) -> None:
        """Note what a disk read brings."""
        readers_brought(&self.readers, ledger, first, last, log_end)
