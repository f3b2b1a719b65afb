"""A bounded table of the records that a file scan meets: columns, and all payloads in one array.

A scan owns the sheet that it fills and is its only thread. It passes full columns to Python and begins new ones.
"""
from libc.stdint cimport int32_t, int64_t, int8_t, uint8_t, uint32_t, uint64_t, uintptr_t

from bookie._fast.base.types cimport Status
from bookie._fast.wire.digest cimport Digest

cdef enum:
    CANDIDATES_MAX = 4
    # Kinds of rows.
    ROW_ENTRY = 0
    ROW_LEDGERS_MAP = 1
    ROW_GARBAGE = 2
    ROW_MASTER_KEY = 3
    ROW_FENCE = 4
    ROW_FORCE = 5
    ROW_LAC = 6

cdef struct Sheet:
    # Columns, all with rows_max rows except `values`.
    int64_t* ledger
    int64_t* entry
    int64_t* position
    int64_t* lac
    int64_t* length              # the ledger's length up to this entry, from the entry's header
    int32_t* size                # bytes of the record without its length word
    int8_t* kind                 # ROW_*
    int8_t* ok                   # 0: the header is implausible, or no digest matches
    uint8_t* values              # payloads; NULL if they are not wanted
    int32_t* ends                # rows_max + 1: where each payload ends
    size_t rows, rows_max
    size_t values_max
    size_t wanted                # payload bytes of the row that did not fit
    # Settings of the scan.
    const Digest* candidates[CANDIDATES_MAX]
    int count                    # of candidates
    const Digest* last           # the candidate that matched last, which the next entry most likely has too
    bint headers                 # check headers
    bint digests                 # check digests
    const int64_t* ranges        # ranges_count pairs of first and last ledger, ascending; NULL for all ledgers
    size_t ranges_count
    # Ledgers whose digest was looked up, ascending, and the Digest's address; 0 leaves only the candidates.
    const int64_t* known
    const uintptr_t* known_digests
    size_t known_count
    bint asks                    # look up the digest of each ledger before its entries are checked
    bint unknown                 # the row that did not fit needs a look-up for ledger `stranger`
    int64_t stranger

# Append a row. FULL: it did not fit, and `wanted` payload bytes are needed, which an empty sheet can be given; or
# `unknown` is set. A record of a ledger outside the ranges is skipped with OK.
cdef Status sheet_put(Sheet* sheet, int64_t ledger, int64_t entry, int64_t position, const uint8_t* data, uint32_t size,
                      int kind) noexcept nogil
# Return whether ledger, entry, LAC and length of an entry of `size` bytes are plausible together.
cdef bint header_holds(const uint8_t* data, size_t size) noexcept nogil
# Return the ledger's own digest if it is known, else a candidate, provided it matches; NULL if none does.
cdef const Digest* digest_found(const Sheet* sheet, const uint8_t* data, size_t size) noexcept nogil

cdef class RowSheet:
    # A sheet and its memory. `begin` allocates new columns, `take` passes them to Python as Rows.
    cdef Sheet sheet
    cdef object kept             # the arrays that the pointers above refer to
    cdef object constants        # digesters and ranges, kept alive
    cdef object digest_of        # called for the digest of each ledger when it is first met
    cdef object known            # its results: ledgers, addresses
    cdef size_t values_max       # payload bytes of a sheet of the usual size
    cdef bint values_wanted
    cdef int begin(self) except -1
    cdef int point_at_known(self) except -1
    # Look up the digest of the ledger because of which a row did not fit. Return whether there was one.
    cdef bint ask(self) except -1
    cdef object take(self)
