"""Python classes over the location index: the GIL is released around each call, a Status becomes an exception.

Index: one thread (its writing side). Reader: one thread at a time. NO_ENTRY is None, never an exception.
"""
import errno
import os
from array import array
from collections import namedtuple

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.file cimport Files
from bookie._fast.base.types cimport BAD_REQUEST, CORRUPT, END, FULL, NO_ENTRY, NO_SPACE, OK, Status
from bookie._fast.index.codec cimport IndexRun, LedgerRecord, StoredRun
from bookie._fast.index.ledger_tables cimport index_delete_ledger, index_put_fence, index_put_ledger
from bookie._fast.index.location cimport (
    IndexHit,
    IndexStat,
    index_abort,
    index_begin,
    index_close,
    index_commit,
    index_delete_runs,
    index_each_fence,
    index_each_ledger,
    index_each_run,
    index_error_text,
    index_last,
    index_lookup,
    index_next,
    index_open,
    index_put_run,
    index_read_through,
    index_reader,
    index_reader_free,
    index_relocate,
    index_stat,
    index_walk,
)
from bookie._fast.index.table cimport Moved

Hit = namedtuple("Hit", "entry log_id offset length span_bytes span_last")
Run = namedtuple("Run", "ledger first log_id offset lengths")
Ledger = namedtuple("Ledger", "ledger key fenced limbo lac quarantine", defaults=(0,))
Stat = namedtuple("Stat", "runs run_pages ledgers ledger_pages page_bytes file_bytes")


class IndexDamaged(ValueError):
    """A value or a page of an index fails its checksum or breaks its format."""


cdef int check(Status status, what) except -1:
    """Raise the exception for a Status; return 0 for OK."""
    if status == OK:
        return 0
    if status == NO_SPACE:
        raise OSError(errno.ENOSPC, f"{what}: no space left for the index; free disk space or raise its map size")
    if status == CORRUPT:
        raise IndexDamaged(f"{what}: a stored value fails its checksum or breaks its format; rebuild the index")
    if status == BAD_REQUEST:
        raise ValueError(f"{what}: no transaction is open, or one is open already, or a value is outside its limits")
    raise OSError(errno.EIO, f"{what}: the index failed; restart and recover from the journal")


cdef Status collect_ledger(void* context, const LedgerRecord* r) noexcept with gil:
    (<list> context).append(Ledger(r.ledger, (<const char*> r.key)[:r.key_size], bool(r.fenced), bool(r.limbo),
                                   (<const char*> r.lac)[:r.lac_size], r.quarantine))
    return OK


cdef Status collect_fence(void* context, int64_t ledger, int64_t deleted_ms) noexcept with gil:
    (<list> context).append((ledger, deleted_ms))
    return OK


cdef Status collect_run(void* context, const IndexRun* r) noexcept with gil:
    (<list> context).append(Run(r.ledger, r.first, r.log_id, r.offset, [r.lengths[i] for i in range(r.count)]))
    return OK


cdef Status collect_stored(void* context, const StoredRun* r) noexcept with gil:
    (<list> context).append((r.ledger, r.first, r.count, r.log_id, r.offset))
    return OK


cdef object hit_of(Status status, const IndexHit* hit, what):
    if status == NO_ENTRY:
        return None
    check(status, what)
    return Hit(hit.entry, hit.log_id, hit.offset, hit.length, hit.span_bytes, hit.span_last)


cdef class Reader:
    """A reader of one index; each call sees the latest commit."""

    def lookup(self, int64_t ledger, int64_t entry):
        """Return the Hit of exactly this entry, or None."""
        cdef IndexHit hit
        cdef Status status
        self.need()
        with nogil:
            status = index_lookup(self.raw, ledger, entry, &hit)
        return hit_of(status, &hit, f"look-up of ledger {ledger} entry {entry}")

    def next(self, int64_t ledger, int64_t entry):
        """Return the Hit of the first stored entry with id >= `entry`, or None."""
        cdef IndexHit hit
        cdef Status status
        self.need()
        with nogil:
            status = index_next(self.raw, ledger, entry, &hit)
        return hit_of(status, &hit, f"look-up of ledger {ledger} from entry {entry}")

    def last(self, int64_t ledger):
        """Return the highest stored entry id, or None."""
        cdef int64_t entry
        cdef Status status
        self.need()
        with nogil:
            status = index_last(self.raw, ledger, &entry)
        if status == NO_ENTRY:
            return None
        check(status, f"last entry of ledger {ledger}")
        return entry

    def count_present(self, int64_t ledger, const int64_t[::1] entries):
        """Return how many of `entries` are stored: one look-up each, and the GIL is released once for all of them."""
        cdef IndexHit hit
        cdef Status status = OK
        cdef Py_ssize_t i
        cdef int64_t found = 0
        self.need()
        with nogil:
            for i in range(entries.shape[0]):
                status = index_lookup(self.raw, ledger, entries[i], &hit)
                if status == OK:
                    found += 1
                elif status != NO_ENTRY:
                    break
        if status != NO_ENTRY:
            check(status, f"look-ups in ledger {ledger}")
        return found

    def ledgers(self):
        """Return all ledger records, by ledger id."""
        cdef list found = []
        cdef Status status
        self.need()
        with nogil:
            status = index_each_ledger(self.raw, collect_ledger, <void*> found, False)
        check(status, "list of ledgers")
        return found

    def fences(self):
        """Return (ledger, time of its deletion in ms since the epoch) of every kept fence, by ledger id."""
        cdef list found = []
        cdef Status status
        self.need()
        with nogil:
            status = index_each_fence(self.raw, collect_fence, <void*> found)
        check(status, "list of fences")
        return found

    def runs(self, int64_t ledger):
        """Return all stored runs of a ledger, by entry id."""
        cdef list found = []
        cdef Status status
        self.need()
        with nogil:
            status = index_each_run(self.raw, ledger, collect_run, <void*> found)
        check(status, f"runs of ledger {ledger}")
        return found

    def walk(self, uint32_t most):
        """Return all stored runs as (ledger, first, slots, log id, offset), `most` of them per read transaction."""
        cdef list found = []
        cdef int64_t ledger = 0
        cdef int64_t entry = 0
        cdef Status status = OK
        self.need()
        while status == OK:
            with nogil:
                status = index_walk(self.raw, &ledger, &entry, most, collect_stored, <void*> found)
        if status != END:
            check(status, "walk over all runs")
        return found

    def stat(self):
        """Return the number of stored values and pages of the tables of runs and ledgers."""
        cdef IndexStat s
        cdef Status status
        self.need()
        with nogil:
            status = index_stat(self.raw, &s)
        check(status, "statistics")
        return Stat(s.runs, s.run_pages, s.ledgers, s.ledger_pages, s.page_bytes, s.file_bytes)

    def close(self):
        """Free the reader's slot. A second call does nothing."""
        if self.raw != NULL:
            index_reader_free(self.raw)
            self.raw = NULL

    cdef int need(self) except -1:
        if self.raw == NULL:
            raise ValueError("this reader is closed")
        return 0


cdef index_failure(int error, str path):
    """Return the OSError of an index that cannot be opened; `error` is an errno or a code of LMDB."""
    remedy = "; lower dbStorage_indexMapSizeGb" if error == errno.ENOMEM else ""
    return OSError(error, f"the location index cannot be opened: {index_error_text(error).decode()}{remedy}", path)


cdef class Index:
    """An open location index and its writing side."""

    @staticmethod
    def open(path, uint64_t map_bytes=1 << 40, Files files=None):
        """Open or create the index in the existing directory `path`. OSError names the path and the reason.

        Readers read its pages through `files`.
        """
        cdef Index index = Index()
        cdef int error
        encoded = os.fsencode(path)
        cdef const char* text = encoded
        with nogil:
            index.raw = index_open(text, map_bytes, &error)
        if index.raw == NULL:
            raise index_failure(error, os.fspath(path))
        index.readers = []
        index.files = files if files is not None else Files()
        index_read_through(index.raw, index.files.ops)
        return index

    def reader(self):
        """Create a Reader, for one thread at a time; it is closed with the index at the latest."""
        cdef Reader reader = Reader()
        self.need()
        with nogil:
            reader.raw = index_reader(self.raw)
        if reader.raw == NULL:
            raise OSError(errno.EIO, "no reader can be created: the index failed, or all reader slots are taken")
        self.readers.append(reader)
        return reader

    def begin(self):
        """Begin the write transaction; the same thread must end it."""
        cdef Status status
        self.need()
        with nogil:
            status = index_begin(self.raw)
        check(status, "begin")

    def put_run(self, int64_t ledger, int64_t first, uint32_t log_id, uint64_t offset, lengths):
        """Store where entries first, first + 1, ... lie; a length of 0 is a gap."""
        cdef uint32_t[::1] slots = array("I", lengths)
        cdef IndexRun run
        cdef Status status
        self.need()
        run.ledger, run.first, run.count, run.log_id, run.offset = ledger, first, len(lengths), log_id, offset
        run.lengths = &slots[0] if len(lengths) else NULL
        with nogil:
            status = index_put_run(self.raw, &run)
        check(status, f"run of ledger {ledger} from entry {first}")

    def put_ledger(self, int64_t ledger, bytes key, bint fenced=False, bint limbo=False, bytes lac=b"",
                   uint8_t quarantine=0):
        """Store or replace the ledger's record."""
        cdef LedgerRecord record
        cdef Status status
        self.need()
        record.ledger, record.fenced, record.limbo, record.quarantine = ledger, fenced, limbo, quarantine
        record.key_size, record.key = len(key), key
        record.lac_size, record.lac = len(lac), lac
        with nogil:
            status = index_put_ledger(self.raw, &record)
        check(status, f"record of ledger {ledger}")

    def put_fence(self, int64_t ledger, int64_t deleted_ms):
        """Store the fence of a deleted ledger, with the time of its deletion in ms since the epoch."""
        cdef Status status
        self.need()
        with nogil:
            status = index_put_fence(self.raw, ledger, deleted_ms)
        check(status, f"fence of ledger {ledger}")

    def delete_ledger(self, int64_t ledger):
        """Delete the ledger's record and runs."""
        cdef Status status
        self.need()
        with nogil:
            status = index_delete_ledger(self.raw, ledger)
        check(status, f"deletion of ledger {ledger}")

    def delete_runs(self, int64_t ledger, uint32_t most):
        """Delete up to `most` runs of a ledger; return (number deleted, whether none is left)."""
        cdef uint32_t left = most
        cdef Status status
        self.need()
        with nogil:
            status = index_delete_runs(self.raw, ledger, &left)
        if status != FULL:
            check(status, f"deletion of runs of ledger {ledger}")
        return most - left, status == OK

    def relocate(self, int64_t ledger, int64_t first, int64_t last, uint64_t size, source, target):
        """Point `size` bytes of records at `source` (log id, offset) to their copy at `target`; return bytes moved."""
        cdef Moved moved
        cdef uint64_t done = 0
        cdef Status status
        self.need()
        moved.ledger, moved.first, moved.last, moved.bytes = ledger, first, last, size
        moved.from_log, moved.from_offset = source
        moved.to_log, moved.to_offset = target
        with nogil:
            status = index_relocate(self.raw, &moved, &done)
        check(status, f"relocation in ledger {ledger} from entry {first}")
        return done

    def commit(self):
        """Commit the transaction durably."""
        cdef Status status
        self.need()
        with nogil:
            status = index_commit(self.raw)
        check(status, "commit")

    def abort(self):
        """Abort the transaction, if one is open."""
        self.need()
        with nogil:
            index_abort(self.raw)

    def close(self):
        """Close the readers and the environment. No other thread may be inside a call; a second call does nothing."""
        if self.raw == NULL:
            return
        for reader in self.readers:
            reader.close()
        with nogil:
            index_close(self.raw)
        self.raw = NULL

    cdef int need(self) except -1:
        if self.raw == NULL:
            raise ValueError("this index is closed")
        return 0
