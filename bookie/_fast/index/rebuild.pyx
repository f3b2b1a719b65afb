"""Rebuilding a location index from entry logs: a scan collects records; batches of them are sorted and put as runs.

A flush of this bookie or of DbLedgerStorage writes records in order, so most batches need no sort. Interleaved logs
hold records of many ledgers in order of arrival; sorting makes the puts touch the pages of the index in order.
"""
from collections import namedtuple

from libc.stdint cimport UINT64_MAX, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

import numpy as np

from bookie._fast.base.bounds cimport LOG_BYTES_MAX, ids_hold
from bookie._fast.base.file cimport FileOps, Files
from bookie._fast.base.open_file cimport open_to_read
from bookie._fast.base.types cimport LENGTH_PREFIX, Status
from bookie._fast.entrylog.ledger_bytes cimport (
    LedgerBytes,
    ledger_map_add,
    ledger_map_free,
    ledger_map_reserve,
    ledger_map_sorted,
)
from bookie._fast.entrylog.scan cimport LogRecord, LogScan, log_check, scan_log
from bookie._fast.index.location cimport (
    index_abort,
    index_append_run,
    index_begin,
    index_commit,
    index_put_run,
    index_written_last,
)
from bookie._fast.index.view cimport Index


cdef inline uint64_t field(const Located* row, int part) noexcept nogil:
    return <uint64_t> row.ledger if part else <uint64_t> row.entry


cdef void scatter(const Located* rows, Located* out, size_t count, int part, int shift) noexcept nogil:
    """Run one pass of the radix sort: copy `rows` to `out` ordered by the byte at `shift` of that field."""
    cdef size_t[256] start
    cdef size_t i, total = 0, held
    memset(start, 0, sizeof(start))
    for i in range(count):
        start[(field(&rows[i], part) >> shift) & 0xFF] += 1
    for i in range(256):
        held = start[i]
        start[i] = total
        total += held
    for i in range(count):
        held = (field(&rows[i], part) >> shift) & 0xFF
        out[start[held]] = rows[i]
        start[held] += 1


cdef Located* located_sort(Located* rows, Located* spare, size_t count) noexcept nogil:
    """Sort rows[count] by (ledger, entry), keeping the order of equal ones. `spare` has as much room. Return where the
    sorted rows are: `rows` or `spare`.

    A radix sort over those bytes of (ledger, entry) in which the rows differ: linear, stable, and few passes on real
    logs, whose records share most bytes of their ids: a thousand ledgers of a million entries take five passes, not
    sixteen.
    """
    cdef uint64_t[2] differing
    cdef Located* swapped
    cdef size_t i
    cdef int part, shift
    differing[0] = differing[1] = 0
    for i in range(1, count):
        differing[0] |= <uint64_t> (rows[i].entry ^ rows[0].entry)
        differing[1] |= <uint64_t> (rows[i].ledger ^ rows[0].ledger)
    for part in range(2):
        for shift in range(0, 64, 8):
            if (differing[part] >> shift) & 0xFF:
                scatter(rows, spare, count, part, shift)
                swapped = rows
                rows = spare
                spare = swapped
    return rows


def sort_rows(rows):
    """Sort a list of (ledger, entry, offset, length). For tests."""
    cdef size_t count = len(rows), i
    cdef Located* found
    first = np.zeros((max(count, 1), sizeof(Located)), np.uint8)
    second = np.zeros_like(first)
    cdef unsigned char[:, ::1] a = first
    cdef unsigned char[:, ::1] b = second
    cdef Located* at = <Located*> &a[0, 0]
    cdef Located* spare = <Located*> &b[0, 0]
    for i in range(count):
        at[i] = Located(rows[i][0], rows[i][1], rows[i][2], rows[i][3])
    with nogil:
        found = located_sort(at, spare, count)
    return [(found[i].ledger, found[i].entry, found[i].offset, found[i].length) for i in range(count)]


LogPart = namedtuple("LogPart", "records bytes end torn more")


cdef bint is_wanted(Rebuilding* state, int64_t ledger) noexcept nogil:
    """Return whether the caller wants this ledger. Adjacent records mostly have the same ledger."""
    cdef size_t low = 0, high = state.wanted_count, middle
    if state.wanted == NULL:
        return True
    if ledger == state.answered:
        return state.answer
    while low < high:
        middle = (low + high) // 2
        if state.wanted[middle] < ledger:
            low = middle + 1
        else:
            high = middle
    state.answered = ledger
    state.answer = low < state.wanted_count and state.wanted[low] == ledger
    return state.answer


cdef Status commit(Rebuilding* state) noexcept nogil:
    if not state.begun:
        return Status.OK
    state.begun = False
    state.uncommitted = 0
    return index_commit(state.index)


cdef Status put_run(Rebuilding* state) noexcept nogil:
    """Put the run; after all entries of its ledger, as nearly every run is, without a search for older copies."""
    cdef IndexRun* run = &state.run
    cdef Status status = Status.OK
    if run.ledger != state.put_ledger:
        state.put_ledger = run.ledger
        status = index_written_last(state.index, run.ledger, &state.put_last)
    if status != Status.OK:
        return status
    if run.first <= state.put_last:
        status = index_put_run(state.index, run)
        state.put_last = max(state.put_last, run.first + run.count - 1)
        return status
    state.put_last = run.first + run.count - 1
    return index_append_run(state.index, run)


cdef Status put_open_run(Rebuilding* state) noexcept nogil:
    cdef Status status = Status.OK
    if state.run.count == 0:
        return Status.OK
    if not state.begun:
        status = index_begin(state.index)
        state.begun = status == Status.OK
    if status == Status.OK:
        state.run.lengths = state.lengths
        status = put_run(state)
        state.run.count = 0
        state.runs += 1
        state.uncommitted += 1
    if status == Status.OK and state.uncommitted >= REBUILD_RUNS_A_COMMIT:
        status = commit(state)
    return status


cdef Status put_row(Rebuilding* state, const Located* row) noexcept nogil:
    """Add one record to the open run, or put that and begin the next."""
    cdef IndexRun* run = &state.run
    cdef int64_t slot = row.entry - run.first
    cdef Status status
    if (run.count == 0 or run.ledger != row.ledger or row.offset != state.run_end
            or slot >= RUN_SLOTS_MAX or slot > <int64_t> run.count + REBUILD_GAP_MOST):
        status = put_open_run(state)
        if status != Status.OK:
            return status
        run.ledger = row.ledger
        run.first = row.entry
        run.log_id = state.log_id
        run.offset = row.offset
        slot = 0
    while <int64_t> run.count < slot:
        state.lengths[run.count] = 0
        run.count += 1
    state.lengths[slot] = row.length
    run.count = <uint32_t> slot + 1
    state.run_end = <uint64_t> row.offset + LENGTH_PREFIX + row.length
    return Status.OK


cdef Status put_stretch(Rebuilding* state) noexcept nogil:
    """Put all collected records into the index, as runs by ledger and entry. Of two copies the later one wins."""
    cdef Located* rows = state.rows
    cdef uint64_t bytes_ = 0
    cdef size_t i
    cdef Status status = Status.OK
    if not state.ordered:
        rows = located_sort(state.rows, state.spare, state.count)
    for i in range(state.count):
        bytes_ += rows[i].length + LENGTH_PREFIX
        if i + 1 == state.count or rows[i + 1].ledger != rows[i].ledger:
            status = ledger_map_reserve(&state.ledgers)
            if status != Status.OK:
                return status
            ledger_map_add(&state.ledgers, rows[i].ledger, bytes_)
            bytes_ = 0
        elif rows[i + 1].entry == rows[i].entry:
            continue
        status = put_row(state, &rows[i])
        if status != Status.OK:
            return status
    state.count = 0
    state.ordered = True
    return put_open_run(state)


cdef Status collect(void* context, const LogRecord* record) noexcept nogil:
    cdef Rebuilding* state = <Rebuilding*> context
    cdef Located* row
    cdef Located* before
    if record.offset >= state.bytes_end:
        state.paused = True
        return Status.FULL
    if not is_wanted(state, record.ledger):
        return Status.OK
    if not ids_hold(record.ledger, record.entry) or record.offset > LOG_BYTES_MAX:
        state.odd += 1
        return Status.OK
    if state.count == state.capacity:
        state.failed = put_stretch(state)
        if state.failed != Status.OK:
            return state.failed
    row = &state.rows[state.count]
    row.ledger = record.ledger
    row.entry = record.entry
    row.offset = <uint32_t> record.offset
    row.length = record.length
    if state.count and state.ordered:
        before = row - 1
        state.ordered = before.ledger < row.ledger or (before.ledger == row.ledger and before.entry <= row.entry)
    state.count += 1
    state.taken += 1
    return Status.OK


cdef class Rebuild:
    """Fills `index` from entry logs. `wanted` are the ids of the ledgers to take, or None for all."""
    cdef Rebuilding state
    cdef Index index             # keeps it open
    cdef object wanted_ids       # numpy array: the memory behind state.wanted

    def __cinit__(self):
        memset(&self.state, 0, sizeof(Rebuilding))

    def __init__(self, Index index not None, wanted=None, *, size_t stretch_bytes=64 << 20):
        cdef const int64_t[::1] ids
        if index.raw == NULL or self.state.rows != NULL:
            raise ValueError("the index must be open, and a Rebuild initialised only once")
        if stretch_bytes < 4 * sizeof(Located):
            raise ValueError(f"stretch_bytes is {stretch_bytes}; it must be at least {4 * sizeof(Located)}")
        self.index = index
        self.state.index = index.raw
        if wanted is not None:
            self.wanted_ids = np.unique(np.asarray(wanted, np.int64))
            self.state.wanted_count = len(self.wanted_ids)
            if self.state.wanted_count == 0:
                self.wanted_ids = np.full(1, -1, np.int64)      # no ledger: still not NULL
            ids = self.wanted_ids
            self.state.wanted = &ids[0]
        self.state.answered = self.state.put_ledger = -1
        self.state.ordered = True
        self.state.capacity = stretch_bytes // 2 // sizeof(Located)
        self.state.rows = <Located*> malloc(self.state.capacity * sizeof(Located))
        self.state.spare = <Located*> malloc(self.state.capacity * sizeof(Located))
        if self.state.rows == NULL or self.state.spare == NULL:
            raise MemoryError(f"no memory for buffers of {stretch_bytes} bytes; pass a smaller stretch_bytes")

    def __dealloc__(self):
        free(self.state.rows)
        free(self.state.spare)
        ledger_map_free(&self.state.ledgers)

    @property
    def taken(self):
        """Number of records of wanted ledgers so far."""
        return self.state.taken

    @property
    def odd(self):
        """Number of records skipped because no index can hold their ids."""
        return self.state.odd

    @property
    def runs(self):
        """Number of runs put so far."""
        return self.state.runs

    def scan(self, path, uint32_t log_id, uint64_t start=0, uint64_t bytes_max=UINT64_MAX, Files files=None):
        """Scan about `bytes_max` bytes of the log at `path` from `start` (0 = its first record) on; return a LogPart.

        If `more` is set, continue at `end`, or take no more of this log. OSError if the log cannot be read or the index
        cannot be written, ValueError if the file is not an entry log; after an OSError of the index the Rebuild cannot
        be used any more.
        """
        cdef LogScan found
        cdef Status status
        if log_id != self.state.log_id:
            self.put_rest()
        files = files if files is not None else Files()
        cdef FileOps* ops = files.ops
        cdef int fd = open_to_read(ops, path)
        self.state.log_id = log_id
        self.state.failed = Status.OK
        self.state.paused = False
        self.state.bytes_end = start + bytes_max if bytes_max < UINT64_MAX - start else UINT64_MAX
        with nogil:
            status = scan_log(ops, fd, start, collect, &self.state, &found)
            ops.close(fd)
            if self.state.failed == Status.OK and not self.state.paused:
                self.state.failed = put_stretch(&self.state)
        self.check(self.state.failed)
        if not self.state.paused:
            log_check(status, path)
        return LogPart(found.records, found.bytes, found.end, bool(found.torn), bool(self.state.paused))

    def finish(self):
        """Commit the rest; return (ledgers, their bytes) found, as numpy arrays by ledger. The Rebuild has ended."""
        cdef LedgerBytes* slots
        cdef Status status
        cdef size_t i
        self.put_rest()
        with nogil:
            status = commit(&self.state)
            slots = ledger_map_sorted(&self.state.ledgers)
        self.check(status)
        ids = np.empty(self.state.ledgers.count, np.int64)
        sizes = np.empty(self.state.ledgers.count, np.uint64)
        cdef int64_t[::1] id_at = ids
        cdef uint64_t[::1] size_at = sizes
        for i in range(self.state.ledgers.count):
            id_at[i] = slots[i].ledger
            size_at[i] = slots[i].bytes
        return ids, sizes

    def abort(self):
        """Abort the open transaction, if there is one."""
        self.state.begun = False
        if self.index.raw != NULL:
            with nogil:
                index_abort(self.state.index)

    cdef object put_rest(self):
        """Put what was collected in the last part of a log, if no other part followed."""
        cdef Status status
        with nogil:
            status = put_stretch(&self.state)
        self.check(status)

    cdef object check(self, Status status):
        if status != Status.OK:
            self.abort()
        if status == Status.NO_MEMORY:
            raise MemoryError("no memory for the ids of the ledgers found")
        if status != Status.OK:
            log_check(status, "the new location index")
