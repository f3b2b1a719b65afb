"""Readers that go forward through a ledger by short steps, known by where the last disk read for them ended.

A client that spreads its reads over the replicas asks each bookie for every second or third entry only, or for one
batch out of three. It goes forward all the same, and what it asks for next lies close behind. A reader counts as going
forward once two disk reads in a row began a short step behind the end of the one before. A step is short if it is at
most STEP_REQUESTS times what is requested, and not more than a miss may read ahead. Random reads of a large ledger
rarely look like this, because only the last few readers of a shard are known.

One table for each shard, guarded by the shard's lock; a miss searches it, a hit does not touch it.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef enum:
    READERS_KNOWN = 32       # in each shard; a new one replaces the one that has not read from disk for longest
    STEP_REQUESTS = 16
    STEPS_CERTAIN = 2        # short steps in a row after which a reader goes forward

cdef struct Reader:
    int64_t ledger
    int64_t first            # its last disk read brought the entries from here
    int64_t end              # to here, exclusive
    uint32_t log_id          # and ended here in an entry log
    uint64_t log_end
    uint32_t stretch         # ids from the beginning of the disk read before to that of the last one
    uint32_t steps           # short steps in a row
    uint64_t turn            # when it last read from disk, in reads of the shard; 0: the place is free

cdef struct Readers:
    Reader known[READERS_KNOWN]
    uint64_t turn

cdef struct Miss:
    # A disk read that is about to begin.
    int64_t ledger
    int64_t entry
    uint32_t log_id
    uint64_t offset          # of the entry in the log
    uint32_t requested       # entries; 0 if it is read ahead of time
    uint32_t entries_max     # what may be read ahead
    uint64_t bytes_max

# Note a disk read. Return the reader's stretch and set `end` to where its disk read before ended, if the reader goes
# forward; else return 0.
cdef uint32_t readers_advance(Readers* readers, const Miss* miss, int64_t* end) noexcept nogil
# Note what the disk read that began with `first` brings: the entries up to `last`.
cdef void readers_brought(Readers* readers, int64_t ledger, int64_t first, int64_t last,
                          uint64_t log_end) noexcept nogil
