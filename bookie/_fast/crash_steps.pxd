"""Where crash tests end the process: between any two steps that must follow each other. One compare otherwise.

Any thread. The steps of a checkpoint are its own (1 to 8); those of collection stand here.
"""
from libc.stdint cimport int64_t

cdef enum CollectStep:
    STEP_COPIED = 21             # survivors of a log are appended, not synced
    STEP_COPY_SYNCED = 22
    STEP_COPY_INDEXED = 23       # the commit is done, the source is still there
    STEP_UNLINKED = 24
    STEP_DELETE_COMMITTED = 31   # ledgers left the index, memory still has them
    STEP_DELETE_FORGOTTEN = 32

cdef void step(int64_t reached) noexcept nogil
