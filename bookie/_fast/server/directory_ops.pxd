"""What an I/O loop measures of each ledger directory: how long its adds and reads took, and how large its entries are.

The loop's thread notes, any reads. What is done in the round in which it came in shares that round's clock readings,
adds of one size in a row are noted together, and so are the entries of a batch.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.op_stats cimport OpStats

cdef enum DirectoryOp:
    DIRECTORY_ADD = 0            # until the write cache and the journal's memory have it, a wait for room included
    DIRECTORY_BLOCKED = 1        # that wait
    DIRECTORY_READ = 2           # neither a wait for a thread, a fence nor a LAC included
    DIRECTORY_LAST = 3           # those that asked for the ledger's last entry
    DIRECTORY_OPS = 4

cdef enum:
    THIS_ROUND = -1              # instead of a time: came in and was done in this round

cdef struct DirectoryOps:
    bint noted                   # in this round
    int64_t round[DIRECTORY_OPS][2]
    int64_t size                 # of the adds that were stored last, so many in a row
    int64_t alike
    OpStats times[DIRECTORY_OPS][2]      # ns; by success
    OpStats added                # bytes of entries
    OpStats answered             # the same of reads; the entries of a batch count as alike

# NULL: no memory. `free` gives it back.
cdef DirectoryOps* directory_ops_new(uint32_t count) noexcept nogil
cdef void directory_op(DirectoryOps* ops, int op, bint success, int64_t ns) noexcept nogil
# An entry of so many bytes was stored.
cdef inline void directory_added(DirectoryOps* ops, int64_t size) noexcept nogil:
    if size != ops.size:
        directory_alike(ops)
        ops.size = size
    ops.alike += 1
    ops.noted = True
# Note what was counted as alike.
cdef void directory_alike(DirectoryOps* ops) noexcept nogil
# So many entries, of so many bytes together, answer a read.
cdef void directory_answered(DirectoryOps* ops, uint32_t count, int64_t bytes) noexcept nogil
# The round that took `ns` is over, for all `count` directories.
cdef void directories_round(DirectoryOps* ops, uint32_t count, int64_t ns) noexcept nogil
# {name: (failed, went well)} of times, and {name: bytes}, as OpViews.
cdef object directory_view(const DirectoryOps* ops)
