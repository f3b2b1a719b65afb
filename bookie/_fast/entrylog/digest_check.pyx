"""Checks digests in one pass over the file through a window. It has its own buffer and caches nothing."""
import errno
import os

import numpy as np

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from bookie._fast.base.bounds cimport RECORD_BYTES_MAX
from bookie._fast.base.file cimport FileOps, Files
from bookie._fast.base.open_file cimport open_to_read
from bookie._fast.base.types cimport LENGTH_PREFIX, Status
from bookie._fast.base.window cimport WINDOW_CHUNK, Window, window_at, window_close, window_load, window_open
from bookie._fast.wire.digest cimport ENTRY_FIXED_BYTES, Digester, digest_holds


cdef Status check_in_window(Window* window, const Placed* rows, size_t count, unsigned char* bad) noexcept nogil:
    cdef Status status
    cdef uint64_t pos
    cdef size_t got, i
    for i in range(count):
        if rows[i].digest == NULL:
            continue
        if rows[i].length > RECORD_BYTES_MAX or rows[i].length < ENTRY_FIXED_BYTES + rows[i].digest.size:
            bad[i] = 1
            continue
        pos = rows[i].offset + LENGTH_PREFIX
        status = window_load(window, pos, pos, rows[i].length, &got)
        if status != Status.OK:
            return status
        if got < rows[i].length or not digest_holds(rows[i].digest, window_at(window, pos), rows[i].length):
            bad[i] = 1
    return Status.OK


cdef Status digests_check(FileOps* ops, int fd, const Placed* rows, size_t count, unsigned char* bad) noexcept nogil:
    cdef Window window
    cdef Status status = window_open(&window, ops, fd, RECORD_BYTES_MAX + WINDOW_CHUNK)
    if status == Status.OK:
        status = check_in_window(&window, rows, count, bad)
        window_close(&window)
    return status


def bad_digests(path, offsets, lengths, which, digesters, Files files=None):
    """Return the row numbers of the records whose digest is wrong, as a numpy array.

    Row i is a record at offsets[i] (ascending) with an entry of lengths[i] bytes; its Digester is digesters[which[i]],
    or None to skip it. OSError if the file cannot be read.
    """
    cdef const uint64_t[::1] offset_at = np.ascontiguousarray(offsets, np.uint64)
    cdef const uint32_t[::1] length_at = np.ascontiguousarray(lengths, np.uint32)
    cdef const long[::1] which_at = np.ascontiguousarray(which, np.int_)
    cdef size_t count = offset_at.shape[0], i
    cdef Digester digester
    cdef Status status
    if length_at.shape[0] != offset_at.shape[0] or which_at.shape[0] != offset_at.shape[0]:
        raise ValueError("offsets, lengths and which must have the same length")
    files = files if files is not None else Files()
    cdef FileOps* ops = files.ops
    bad = np.zeros(max(count, 1), np.uint8)
    cdef unsigned char[::1] bad_at = bad
    cdef Placed* rows = <Placed*> malloc(max(count, 1) * sizeof(Placed))
    if rows == NULL:
        raise MemoryError("no memory for the offsets of records")
    cdef int fd = -1
    try:
        for i in range(count):
            digester = digesters[which_at[i]]
            rows[i].offset = offset_at[i]
            rows[i].length = length_at[i]
            rows[i].digest = &digester.digest if digester is not None else NULL
        fd = open_to_read(ops, path)
        with nogil:
            status = digests_check(ops, fd, rows, count, &bad_at[0])
            ops.close(fd)
    finally:
        free(rows)
    if status == Status.NO_MEMORY:
        raise MemoryError(f"{path}: no memory to read the file")
    if status != Status.OK:
        raise OSError(errno.EIO, os.strerror(errno.EIO), os.fspath(path))
    return np.flatnonzero(bad[:count])
