"""Records as rows of columns. Rows are written without the GIL; numpy owns the memory, which Arrow uses in place."""
from collections import namedtuple

import numpy as np

from libc.string cimport memcpy, memset

from bookie._fast.base.cursor cimport load_i64
from bookie._fast.wire.digest cimport ENTRY_FIXED_BYTES, Digester, digest_holds

cdef enum:
    ROWS_MAX = 1 << 20
    VALUES_MAX = 0x7FFFFFFF      # offsets are int32

Rows = namedtuple("Rows", "ledger entry position lac length size kind ok values ends")


cdef bint in_ranges(const Sheet* sheet, int64_t ledger) noexcept nogil:
    cdef size_t low = 0, high = sheet.ranges_count, middle
    if sheet.ranges == NULL:
        return True
    while low < high:
        middle = (low + high) // 2
        if sheet.ranges[2 * middle + 1] < ledger:
            low = middle + 1
        else:
            high = middle
    return low < sheet.ranges_count and sheet.ranges[2 * low] <= ledger


cdef bint header_holds(const uint8_t* data, size_t size) noexcept nogil:
    cdef int64_t entry, lac
    if size < ENTRY_FIXED_BYTES:
        return False
    entry = load_i64(data + 8)
    lac = load_i64(data + 16)
    return load_i64(data) >= 0 and entry >= 0 and -1 <= lac < entry and load_i64(data + 24) >= 0


cdef bint candidate_holds(const Digest* digest, const uint8_t* data, size_t size) noexcept nogil:
    return size >= ENTRY_FIXED_BYTES + digest.size and digest_holds(digest, data, size)


cdef bint look_up(const Sheet* sheet, int64_t ledger, const Digest** digest) noexcept nogil:
    """Return whether the ledger's digest was looked up; `digest` gets it, or NULL if none was found."""
    cdef size_t low = 0, high = sheet.known_count, middle
    digest[0] = NULL
    while low < high:
        middle = (low + high) // 2
        if sheet.known[middle] < ledger:
            low = middle + 1
        else:
            high = middle
    if low == sheet.known_count or sheet.known[low] != ledger:
        return False
    digest[0] = <const Digest*> sheet.known_digests[low]
    return True


cdef const Digest* digest_found(const Sheet* sheet, const uint8_t* data, size_t size) noexcept nogil:
    cdef const Digest* own = NULL
    cdef int k
    if sheet.known_count and size >= ENTRY_FIXED_BYTES:
        look_up(sheet, load_i64(data), &own)
    if own != NULL:
        return own if candidate_holds(own, data, size) else NULL
    if candidate_holds(sheet.last, data, size):
        return sheet.last
    for k in range(sheet.count):
        if sheet.candidates[k] != sheet.last and candidate_holds(sheet.candidates[k], data, size):
            return sheet.candidates[k]
    return NULL


cdef bint judge(Sheet* sheet, const Digest* own, const uint8_t* data, size_t size) noexcept nogil:
    """Return whether the entry passes the requested checks. Remembers which candidate's digest it has."""
    cdef const Digest* found
    if sheet.headers and not header_holds(data, size):
        return False
    if not sheet.digests and (sheet.values == NULL or sheet.count == 1 or own != NULL):
        return True
    found = digest_found(sheet, data, size)
    if found != NULL and own == NULL:
        sheet.last = found
    return found != NULL or not sheet.digests


cdef Status sheet_put(Sheet* sheet, int64_t ledger, int64_t entry, int64_t position, const uint8_t* data, uint32_t size,
                      int kind) noexcept nogil:
    cdef size_t row = sheet.rows, payload = 0, overhead
    cdef bint ok = True
    cdef const Digest* own = NULL
    if not in_ranges(sheet, ledger):
        return Status.OK
    if sheet.asks and kind == ROW_ENTRY and not look_up(sheet, ledger, &own):
        sheet.unknown = True
        sheet.stranger = ledger
        return Status.FULL
    if row == sheet.rows_max:
        sheet.wanted = 0
        return Status.FULL
    if kind == ROW_ENTRY:
        ok = judge(sheet, own, data, size)
        if sheet.values != NULL:
            overhead = ENTRY_FIXED_BYTES + (own if own != NULL else sheet.last).size
            payload = size - overhead if size > overhead else 0
            if payload > sheet.values_max - sheet.ends[row]:
                sheet.wanted = payload
                return Status.FULL
            memcpy(sheet.values + sheet.ends[row], data + overhead, payload)
    if sheet.values != NULL:
        sheet.ends[row + 1] = sheet.ends[row] + <int32_t> payload
    sheet.ledger[row] = ledger
    sheet.entry[row] = entry
    sheet.position[row] = position
    sheet.lac[row] = load_i64(data + 16) if kind == ROW_ENTRY and size >= ENTRY_FIXED_BYTES else -1
    sheet.length[row] = load_i64(data + 24) if kind == ROW_ENTRY and size >= ENTRY_FIXED_BYTES else -1
    sheet.size[row] = <int32_t> size
    sheet.kind[row] = kind
    sheet.ok[row] = ok
    sheet.rows = row + 1
    return Status.OK


cdef class RowSheet:
    """The rows that a scan fills in, and the checks that it makes.

    Args:
        digesters: the digests that an entry may have, the likeliest first; 1 to 4.
        headers: whether to check headers.
        digests: whether to check digests.
        ranges: (first, last) ledger of each range to keep, ascending and disjoint; None for all ledgers.
        rows_max: rows of a batch.
        values_max: payload bytes of a batch, 0 for no payloads. A single larger payload gets a batch of its own.
        digest_of: called with a ledger id when the ledger is first met, returns its Digester; None stands for
            `digesters`. The scan raises what it raises.

    Raises:
        ValueError: if an argument is out of range.
    """

    def __init__(self, digesters, *, bint headers=False, bint digests=False, ranges=None, size_t rows_max=16384,
                 size_t values_max=0, digest_of=None):
        cdef Digester digester
        cdef const int64_t[:, ::1] pairs
        digesters = list(digesters)
        if not 0 < len(digesters) <= CANDIDATES_MAX:
            raise ValueError(f"{len(digesters)} kinds of digest; an entry may have 1 to {CANDIDATES_MAX}")
        if not 0 < rows_max <= ROWS_MAX:
            raise ValueError(f"rows_max is {rows_max}; a batch has 1 to {ROWS_MAX} rows")
        if values_max > VALUES_MAX:
            raise ValueError(f"values_max is {values_max}; a batch holds up to {VALUES_MAX} bytes of payloads")
        memset(&self.sheet, 0, sizeof(Sheet))
        for k, digester in enumerate(digesters):
            self.sheet.candidates[<size_t> k] = &digester.digest
        self.sheet.count = len(digesters)
        self.sheet.last = self.sheet.candidates[0]
        self.sheet.headers = headers
        self.sheet.digests = digests
        self.sheet.rows_max = rows_max
        self.values_max = values_max
        self.values_wanted = values_max > 0
        self.constants = [digesters]
        self.digest_of = digest_of
        # The digest of a ledger matters only for checking digests and for finding payloads.
        self.sheet.asks = digest_of is not None and (digests or values_max > 0)
        self.known = np.empty(0, np.int64), np.empty(0, np.uintp)
        if ranges is not None:
            table = np.ascontiguousarray(ranges, np.int64).reshape(-1, 2)
            flat = table.reshape(-1)
            if len(flat) and ((np.diff(flat) < 0).any() or (flat[2::2] == flat[1:len(flat) - 1:2]).any()):
                raise ValueError("ranges of ledgers must be ascending and disjoint")
            table = table if len(table) else np.array([[0, -1]], np.int64)
            self.constants.append(table)
            pairs = table
            self.sheet.ranges = &pairs[0, 0]
            self.sheet.ranges_count = pairs.shape[0]

    def know(self, ledgers, digesters):
        """Set the Digester of each of these ledgers, or None, so that `digest_of` is not called for them."""
        cdef Digester digester
        table = {}
        for ledger, digester in zip(ledgers, digesters, strict=True):
            table[ledger] = 0 if digester is None else <uintptr_t> &digester.digest
            self.constants.append(digester)
        order = sorted(table)
        self.known = np.array(order, np.int64), np.array([table[ledger] for ledger in order], np.uintp)
        self.point_at_known()

    cdef int point_at_known(self) except -1:
        cdef const int64_t[::1] ledgers
        cdef const uintptr_t[::1] addresses
        ledgers, addresses = self.known
        self.sheet.known_count = ledgers.shape[0]
        if self.sheet.known_count:
            self.sheet.known = &ledgers[0]
            self.sheet.known_digests = &addresses[0]
        return 0

    cdef int begin(self) except -1:
        cdef size_t n = self.sheet.rows_max
        cdef size_t room = max(self.values_max, self.sheet.wanted)
        cdef int64_t[:, ::1] longs
        cdef int8_t[:, ::1] bytes_
        cdef int32_t[:, ::1] ints
        cdef uint8_t[::1] values
        wide = np.empty((5, n), np.int64)
        narrow = np.empty((2, n), np.int8)
        middle = np.empty((2, n + 1), np.int32)
        longs, bytes_, ints = wide, narrow, middle
        self.kept = [wide, narrow, middle, None]
        self.sheet.ledger = &longs[0, 0]
        self.sheet.entry = &longs[1, 0]
        self.sheet.position = &longs[2, 0]
        self.sheet.lac = &longs[3, 0]
        self.sheet.length = &longs[4, 0]
        self.sheet.kind = &bytes_[0, 0]
        self.sheet.ok = &bytes_[1, 0]
        self.sheet.size = &ints[0, 0]
        self.sheet.ends = &ints[1, 0]
        self.sheet.ends[0] = 0
        self.sheet.rows = 0
        self.sheet.wanted = 0
        if self.values_wanted:
            self.kept[3] = np.empty(room, np.uint8)
            values = self.kept[3]
            self.sheet.values = &values[0]
            self.sheet.values_max = room
        return 0

    cdef bint ask(self) except -1:
        cdef Digester digester
        if not self.sheet.unknown:
            return False
        ledger = self.sheet.stranger
        digester = self.digest_of(ledger)
        address = 0 if digester is None else <uintptr_t> &digester.digest
        self.constants.append(digester)
        at = np.searchsorted(self.known[0], ledger)
        self.known = np.insert(self.known[0], at, ledger), np.insert(self.known[1], at, address)
        self.point_at_known()
        self.sheet.unknown = False
        return True

    cdef object take(self):
        cdef size_t n = self.sheet.rows
        wide, narrow, middle, values = self.kept
        used = self.sheet.ends[n] if self.values_wanted else 0
        self.kept = None
        self.sheet.rows = 0
        return Rows(
            wide[0, :n], wide[1, :n], wide[2, :n], wide[3, :n], wide[4, :n], middle[0, :n], narrow[0, :n],
            narrow[1, :n], values[:used] if self.values_wanted else None,
            middle[1, : n + 1] if self.values_wanted else None,
        )
