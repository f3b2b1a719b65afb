"""Runs of `u32 length | entry`: the form in which batch responses, caches, journals and entry logs hold entries.

No allocation, no state; any thread. The caller owns the memory of the run and its offsets. The offsets of a run of n
records are n + 1 numbers: record k, including its length word, lies at [offsets[k], offsets[k + 1]).
"""
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t

from bookie._fast.base.cursor cimport load_i64, load_u32
from bookie._fast.base.types cimport END, LENGTH_PREFIX, OK, TORN, Slice, Status
from bookie._fast.wire.digest cimport ENTRY_FIXED_BYTES, Digest, digest_holds

cdef inline Status record_next(const uint8_t* pos, const uint8_t* end, Slice* entry) noexcept nogil:
    """Find the entry of the record at `pos`; the next record begins at its end. END at `end`, TORN if it is cut off.
    """
    if pos == end:
        return END
    if end - pos < LENGTH_PREFIX or load_u32(pos) > <size_t> (end - pos - LENGTH_PREFIX):
        return TORN
    entry.base = pos + LENGTH_PREFIX
    entry.size = load_u32(pos)
    return OK

cdef inline bint entry_holds(const Digest* digest, const uint8_t* entry, int64_t size, int64_t ledger,
                             int64_t id) noexcept nogil:
    """Return whether `entry`, as stored, has this ledger and entry id and a valid digest."""
    if size < ENTRY_FIXED_BYTES + <int64_t> digest.size:
        return False
    return load_i64(entry) == ledger and load_i64(entry + 8) == id and digest_holds(digest, entry, size)

# Count the whole records in `run`. Return OK, or TORN if the last record is cut off; *count does not include that
# one.
cdef Status records_count(const uint8_t* run, size_t size, int64_t* count) noexcept nogil
# Fill in the count + 1 offsets of a run that holds `count` whole records.
cdef void records_offsets(const uint8_t* run, int64_t count, int64_t* offsets) noexcept nogil
# Check that entry k belongs to `ledger`, has the id first + k, is long enough and carries the right digest. Return
# the first k for which this does not hold, or `count`.
cdef int64_t records_verify(const Digest* digest, const uint8_t* run, const int64_t* offsets, int64_t count,
                            int64_t ledger, int64_t first) noexcept nogil
