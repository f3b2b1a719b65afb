"""Runs of `u32 length | entry`: count, offsets, verification. Any thread; the GIL is released once per run."""
import numpy as np

from bookie._fast.wire.digest cimport Digester


cdef Status records_count(const uint8_t* run, size_t size, int64_t* count) noexcept nogil:
    cdef const uint8_t* pos = run
    cdef Slice entry
    cdef Status status = record_next(pos, run + size, &entry)
    count[0] = 0
    while status == OK:
        count[0] += 1
        pos = entry.base + entry.size
        status = record_next(pos, run + size, &entry)
    return OK if status == END else status


cdef void records_offsets(const uint8_t* run, int64_t count, int64_t* offsets) noexcept nogil:
    cdef int64_t k
    offsets[0] = 0
    for k in range(count):
        offsets[k + 1] = offsets[k] + LENGTH_PREFIX + load_u32(run + offsets[k])


cdef int64_t records_verify(const Digest* digest, const uint8_t* run, const int64_t* offsets, int64_t count,
                            int64_t ledger, int64_t first) noexcept nogil:
    cdef int64_t k, start
    for k in range(count):
        start = offsets[k] + LENGTH_PREFIX
        if not entry_holds(digest, run + start, offsets[k + 1] - start, ledger, first + k):
            return k
    return count


cdef bint offsets_fit(const int64_t* offsets, int64_t count, size_t size) noexcept nogil:
    """Return whether each record has room for its length word and the offsets cover exactly `size` bytes."""
    cdef int64_t k
    for k in range(count):
        if offsets[k + 1] - offsets[k] < LENGTH_PREFIX:
            return False
    return offsets[0] == 0 and <size_t> offsets[count] == size


def offsets(const uint8_t[::1] run):
    """Return the n + 1 int64 offsets of a run of n records. ValueError if the run ends inside a record."""
    cdef size_t size = run.shape[0]
    cdef const uint8_t* base = &run[0] if size else NULL
    cdef int64_t count
    cdef Status status
    cdef int64_t[::1] out
    with nogil:
        status = records_count(base, size, &count)
    if status != OK:
        raise ValueError(f"the run of {size} bytes ends inside record {count}")
    answer = np.empty(count + 1, dtype=np.int64)
    out = answer
    with nogil:
        records_offsets(base, count, &out[0])
    return answer


def verify(Digester digester, const uint8_t[::1] run, const int64_t[::1] offsets, int64_t ledger, int64_t first):
    """Return the index of the first entry of `run` that is not entry first + k of `ledger` with a valid digest, or
    the count.

    ValueError if `offsets` are not those of a run of this size.
    """
    cdef int64_t count = offsets.shape[0] - 1
    cdef size_t size = run.shape[0]
    cdef int64_t good
    if count < 0 or not offsets_fit(&offsets[0], count, size):
        raise ValueError(f"{count + 1} offsets do not belong to a run of {size} bytes; take them from offsets(run)")
    if count == 0:
        return 0
    with nogil:
        good = records_verify(&digester.digest, &run[0], &offsets[0], count, ledger, first)
    return good


def entry_is_valid(Digester digester, const uint8_t[::1] entry, int64_t ledger, int64_t entry_id):
    """Return whether `entry`, as stored, is entry `entry_id` of `ledger` and carries the right digest."""
    cdef int64_t size = entry.shape[0]
    cdef bint holds
    if size == 0:
        return False
    with nogil:
        holds = entry_holds(&digester.digest, &entry[0], size, ledger, entry_id)
    return holds
