"""Durations of adds and reads, and sizes of entries, by ledger directory, as an I/O loop measures them.

The loop's thread records, any thread reads. Requests that are done in the round in which they came in share that
round's clock readings; consecutive adds of one size are recorded together, and so are the entries of a batch.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.op_stats cimport OpStats

cdef enum DirectoryOp:
    DIRECTORY_ADD = 0            # until write cache and journal buffer have it, including a wait for room
    DIRECTORY_BLOCKED = 1        # that wait
    DIRECTORY_READ = 2           # without waits for a thread, a fence or a LAC
    DIRECTORY_LAST = 3           # reads that asked for the ledger's last entry
    DIRECTORY_OPS = 4

cdef enum:
    THIS_ROUND = -1              # instead of a duration: it came in and was done in this round

cdef struct DirectoryOps:
    bint noted                   # something was recorded in this round
    int64_t round[DIRECTORY_OPS][2]
    int64_t size                 # of the adds stored last, `alike` in a row
    int64_t alike
    OpStats times[DIRECTORY_OPS][2]      # ns; by success
    OpStats added                # bytes of entries added
    OpStats answered             # bytes of entries read; those of a batch count as equal

# Return zeroed stats of `count` directories, which `free` frees; NULL if there is no memory.
cdef DirectoryOps* directory_ops_new(uint32_t count) noexcept nogil
cdef void directory_op(DirectoryOps* ops, int op, bint success, int64_t ns) noexcept nogil
# Record that an entry of `size` bytes was stored.
cdef inline void directory_added(DirectoryOps* ops, int64_t size) noexcept nogil:
    if size != ops.size:
        directory_alike(ops)
        ops.size = size
    ops.alike += 1
    ops.noted = True
# Record the adds counted in `alike`.
cdef void directory_alike(DirectoryOps* ops) noexcept nogil
# Record that `count` entries with `bytes` bytes in total answer a read.
cdef void directory_answered(DirectoryOps* ops, uint32_t count, int64_t bytes) noexcept nogil
# End a round that took `ns`, for all `count` directories.
cdef void directories_round(DirectoryOps* ops, uint32_t count, int64_t ns) noexcept nogil
# Return a DirectoryView: {name: (failed, succeeded)} durations, and the two sizes, as OpViews.
cdef object directory_view(const DirectoryOps* ops)
