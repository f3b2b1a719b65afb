"""A radix sort over those bytes of (ledger, entry) in which the rows differ: linear, stable, few passes on real logs.

Records of a log share most bytes of their ids: a thousand ledgers of a million entries are five passes, not sixteen.
"""
from libc.stdint cimport uint64_t
from libc.string cimport memset

import numpy as np


cdef inline uint64_t field(const Located* row, int part) noexcept nogil:
    return <uint64_t> row.ledger if part else <uint64_t> row.entry


cdef void scatter(const Located* rows, Located* out, size_t count, int part, int shift) noexcept nogil:
    """One pass: `out` is `rows` by the byte at `shift` of that field."""
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
    """Sort a list of (ledger, entry, offset, length)."""
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
