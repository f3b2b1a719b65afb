"""Durations and sizes by ledger directory."""
from collections import namedtuple

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc

from bookie._fast.base.op_stats cimport op_note, op_view

DirectoryView = namedtuple("DirectoryView", "times added answered")

NAMES = ("add", "blocked", "read", "last")


cdef DirectoryOps* directory_ops_new(uint32_t count) noexcept nogil:
    return <DirectoryOps*> calloc(count, sizeof(DirectoryOps))


cdef void directory_op(DirectoryOps* ops, int op, bint success, int64_t ns) noexcept nogil:
    if ns == THIS_ROUND:
        ops.round[op][success] += 1
        ops.noted = True
    else:
        op_note(&ops.times[op][success], ns, 1)


cdef void directory_alike(DirectoryOps* ops) noexcept nogil:
    if ops.alike:
        op_note(&ops.added, ops.size, ops.alike)
        ops.alike = 0


cdef void directory_answered(DirectoryOps* ops, uint32_t count, int64_t bytes) noexcept nogil:
    cdef int64_t each = bytes // count
    op_note(&ops.answered, each, count)
    ops.answered.sum += bytes - each * count


cdef void directories_round(DirectoryOps* ops, uint32_t count, int64_t ns) noexcept nogil:
    cdef uint32_t at
    cdef int op, success
    for at in range(count):
        if not ops[at].noted:
            continue
        ops[at].noted = False
        directory_alike(&ops[at])
        for op in range(DIRECTORY_OPS):
            for success in range(2):
                if ops[at].round[op][success]:
                    op_note(&ops[at].times[op][success], ns, ops[at].round[op][success])
                    ops[at].round[op][success] = 0


cdef object directory_view(const DirectoryOps* ops):
    return DirectoryView(
        {name: (op_view(&ops.times[at][0]), op_view(&ops.times[at][1])) for at, name in enumerate(NAMES)},
        op_view(&ops.added), op_view(&ops.answered))
