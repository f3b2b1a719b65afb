"""What a scan of a file writes down of its records: columns of a bounded number of rows, payloads in one piece.

The scan that fills a sheet owns it and is its only thread; it hands the columns to Python and begins new ones.
"""
from libc.stdint cimport int32_t, int64_t, int8_t, uint8_t, uint32_t, uint64_t, uintptr_t

from bookie._fast.base.types cimport Status
from bookie._fast.wire.digest cimport Digest

cdef enum:
    CANDIDATES_MAX = 4
    # What a row is.
    ROW_ENTRY = 0
    ROW_LEDGERS_MAP = 1
    ROW_GARBAGE = 2
    ROW_MASTER_KEY = 3
    ROW_FENCE = 4
    ROW_FORCE = 5
    ROW_LAC = 6

cdef struct Sheet:
    # Columns, all of rows_max but the values.
    int64_t* ledger
    int64_t* entry
    int64_t* position
    int64_t* lac
    int64_t* length              # of the ledger up to this entry, as the entry says
    int32_t* size                # bytes of the record without its length word
    int8_t* kind                 # ROW_*
    int8_t* ok                   # 0: the header makes no sense, or no digest holds
    uint8_t* values              # NULL: payloads are not wanted
    int32_t* ends                # rows_max + 1: where each payload ends
    size_t rows, rows_max
    size_t values_max
    size_t wanted                # payload bytes of the row that found no room
    # Constant: what is looked at.
    const Digest* candidates[CANDIDATES_MAX]
    int count                    # of candidates
    const Digest* last           # which of them held last: the next entry most likely has it too
    bint headers                 # judge headers
    bint digests                 # judge digests
    const int64_t* ranges        # ranges_count pairs of first and last ledger, ascending; NULL: all ledgers
    size_t ranges_count
    # Ledgers whose digest is known, ascending, and the address of each; 0: only the candidates are left.
    const int64_t* known
    const uintptr_t* known_digests
    size_t known_count
    bint asks                    # every other ledger is asked for before its entries are judged
    bint unknown                 # the row that found no room is of such a ledger: `stranger`
    int64_t stranger

# One more row. FULL: no room for it; `wanted` payload bytes are needed, which one sheet can hold if it is empty; or its
# ledger is `unknown`. A record of a ledger that is not asked for is OK and leaves no row.
cdef Status sheet_put(Sheet* sheet, int64_t ledger, int64_t entry, int64_t position, const uint8_t* data, uint32_t size,
                      int kind) noexcept nogil
# Whether ledger, entry, LAC and length of an entry of `size` bytes can be true together.
cdef bint header_holds(const uint8_t* data, size_t size) noexcept nogil
# The ledger's own digest where it is known, else a candidate, if it holds; NULL: none does.
cdef const Digest* digest_found(const Sheet* sheet, const uint8_t* data, size_t size) noexcept nogil

cdef class RowSheet:
    # A sheet and its memory. `begin` makes new columns, `take` hands them over.
    cdef Sheet sheet
    cdef object kept             # the arrays that the pointers above point into
    cdef object constants        # digesters and ranges, kept alive
    cdef object digest_of        # asked for the digest of each ledger that is met
    cdef object known            # what it answered: ledgers, addresses
    cdef size_t values_max       # payload bytes of a usual sheet
    cdef bint values_wanted
    cdef int begin(self) except -1
    cdef int point_at_known(self) except -1
    # Whether a row found no room because of its ledger, which is known now.
    cdef bint ask(self) except -1
    cdef object take(self)
