"""Entries of a batch as Python objects, and all their payloads in one array for Arrow."""
cimport cython
from cpython.buffer cimport Py_buffer
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.string cimport memmove

from bookie._fast.base.cursor cimport load_i64

import numpy as np

cdef enum:
    LAC_AT = 20           # after the record's length, ledger and entry
    LENGTH_AT = 28
    HEAD_BYTES = 36


cdef extern from "Python.h":
    int _Py_MEMORYVIEW_RELEASED
    Py_ssize_t Py_REFCNT(PyObject* thing)
    object PyMemoryView_FromObject(object view)
    ctypedef struct PyMemoryViewObject:
        Py_hash_t hash           # -1: not computed yet
        int flags
        Py_ssize_t exports
        Py_buffer view
        PyObject* weakreflist


cdef inline void narrow(PyObject* view, char* start, int64_t size) noexcept:
    """Point a view of bytes at `size` bytes from `start` on."""
    cdef PyMemoryViewObject* inner = <PyMemoryViewObject*> view
    inner.view.buf = start
    inner.view.len = inner.view.shape[0] = size
    inner.hash = -1


cdef inline bint unseen(PyObject* entry) noexcept:
    """Return whether the iterator holds the only reference to the entry, and the entry the only one to its view."""
    cdef PyObject* data
    cdef PyMemoryViewObject* inner
    if entry == NULL or Py_REFCNT(entry) != 1:
        return False
    data = <PyObject*> (<Entry> entry).data
    inner = <PyMemoryViewObject*> data
    return (Py_REFCNT(data) == 1 and inner.exports == 0 and inner.weakreflist == NULL
            and not inner.flags & _Py_MEMORYVIEW_RELEASED)


@cython.freelist(64)
cdef class Entry:
    """An entry that was read: its id, and its payload as a view of the batch in which it arrived."""

    def __init__(self, int64_t id, data):
        self.id, self.data = id, data

    @property
    def payload(self):
        """A copy of the payload."""
        return bytes(self.data)

    def __bytes__(self):
        return bytes(self.data)

    def __repr__(self):
        return f"Entry(id={self.id}, data={bytes(self.data)!r})"

    def __eq__(self, other):
        return isinstance(other, Entry) and self.id == (<Entry> other).id and self.data == (<Entry> other).data

    __hash__ = None


cdef class EntryIterator:
    """Iterates over the entries first, first + 1, ... of a run; `overhead` is the number of bytes in front of a
    payload.

    ValueError if a record is shorter than `overhead`. Most loops drop an entry before the next but one; such an entry
    object is reused, which costs a third of creating a new one.
    """

    def __init__(self, run, const int64_t[::1] offsets, int64_t overhead, int64_t first):
        cdef const uint8_t[::1] size = run  # bytes, one after the other
        payloads_size(offsets, overhead, size.shape[0])
        run = memoryview(run)
        self.run, self.offsets, self.overhead, self.first = run, offsets, overhead, first
        self.start = (<PyMemoryViewObject*> <PyObject*> run).view.buf
        self.count = offsets.shape[0] - 1

    def __dealloc__(self):
        Py_XDECREF(self.last[0])
        Py_XDECREF(self.last[1])

    def __iter__(self):
        return self

    def __next__(self):
        cdef int64_t k = self.at
        cdef PyObject* kept = self.last[k & 1]
        cdef Entry entry
        cdef int64_t start
        if k >= self.count:
            raise StopIteration
        start = self.offsets[k] + self.overhead
        if unseen(kept):
            entry = <Entry> kept
        else:
            entry = Entry.__new__(Entry)
            entry.data = PyMemoryView_FromObject(self.run)
            Py_INCREF(entry)
            self.last[k & 1] = <PyObject*> entry
            Py_XDECREF(kept)
        self.at = k + 1
        entry.id = self.first + k
        narrow(<PyObject*> entry.data, <char*> self.start + start, self.offsets[k + 1] - start)
        return entry


cdef void payloads_pack(const uint8_t* run, const int64_t* offsets, int64_t count, int64_t overhead, uint8_t* values,
                        int32_t* edges) noexcept nogil:
    cdef int64_t k, size
    for k in range(count):
        size = offsets[k + 1] - offsets[k] - overhead
        memmove(values + edges[k], run + offsets[k] + overhead, size)  # they may overlap
        edges[k + 1] = edges[k] + <int32_t> size


cdef int64_t payloads_size(const int64_t[::1] offsets, int64_t overhead, int64_t size) except -1:
    cdef int64_t k
    cdef int64_t count = offsets.shape[0] - 1
    if count < 0 or overhead < 0 or offsets[0] < 0 or offsets[count] > size:
        raise ValueError(f"{count + 1} offsets do not belong to a run of {size} bytes")
    for k in range(count):
        if offsets[k + 1] - offsets[k] < overhead:
            raise ValueError(f"record {k} is shorter than the {overhead} bytes in front of its payload")
    return offsets[count] - offsets[0] - count * overhead


cdef int check_overhead(int64_t overhead) except -1:
    if overhead < HEAD_BYTES:
        raise ValueError(f"overhead is {overhead}; a record begins with a header of at least {HEAD_BYTES} bytes")
    return 0


cdef void payloads_heads(const uint8_t* run, const int64_t* offsets, int64_t count, int64_t overhead, int32_t* sizes,
                         int64_t* lacs, int64_t* lengths) noexcept nogil:
    cdef int64_t k
    for k in range(count):
        sizes[k] = <int32_t> (offsets[k + 1] - offsets[k] - overhead)
        lacs[k] = load_i64(run + offsets[k] + LAC_AT)
        lengths[k] = load_i64(run + offsets[k] + LENGTH_AT)


def pack(runs, int64_t overhead):
    """Return all payloads in one uint8 array, and an int32 array of n + 1 offsets where they begin and end.

    `runs` are (run, offsets) pairs. ValueError if the payloads have 2 GiB or more, or a record is shorter than
    `overhead`.
    """
    cdef const uint8_t[::1] run
    cdef const int64_t[::1] offsets
    cdef uint8_t[::1] into
    cdef int32_t[::1] places
    cdef int64_t total = 0, done = 0
    for run, offsets in runs:
        total += payloads_size(offsets, overhead, run.shape[0])
        done += offsets.shape[0] - 1
    if total > 0x7FFFFFFF:
        raise ValueError(f"{total} bytes of payloads; int32 offsets reach 2147483647: read smaller batches")
    values = np.empty(total, dtype=np.uint8)
    edges = np.zeros(done + 1, dtype=np.int32)
    into, places = values, edges
    done = 0
    if total:
        for run, offsets in runs:
            if offsets.shape[0] > 1:
                with nogil:
                    payloads_pack(&run[0], &offsets[0], offsets.shape[0] - 1, overhead, &into[0], &places[done])
                done += offsets.shape[0] - 1
    return values, edges


def heads(runs, int64_t overhead):
    """Return three arrays: payload sizes (int32), and the LAC and the ledger length (int64) in the header of each
    entry.

    `runs` are (run, offsets) pairs. ValueError if a record is shorter than `overhead`, or `overhead` than a header.
    """
    cdef const uint8_t[::1] run
    cdef const int64_t[::1] offsets
    cdef int32_t[::1] size
    cdef int64_t[::1] lac, length
    cdef int64_t done = 0
    check_overhead(overhead)
    for run, offsets in runs:
        payloads_size(offsets, overhead, run.shape[0])
        done += offsets.shape[0] - 1
    sizes = np.empty(done, dtype=np.int32)
    lacs, lengths = np.empty(done, dtype=np.int64), np.empty(done, dtype=np.int64)
    size, lac, length = sizes, lacs, lengths
    done = 0
    for run, offsets in runs:
        if offsets.shape[0] > 1:
            with nogil:
                payloads_heads(&run[0], &offsets[0], offsets.shape[0] - 1, overhead, &size[done], &lac[done],
                               &length[done])
            done += offsets.shape[0] - 1
    return sizes, lacs, lengths
