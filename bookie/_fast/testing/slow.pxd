"""File operations that take as long as on disks of a set latency and rate, for measurements: the real calls and waits.

Built only with BOOKIE_FAULTS=1 or BOOKIE_DEBUG=1. FileOps carries no context, so a process has one set of disks, which
all SlowFiles share. Any thread.
"""
from bookie._fast.base.file cimport Files

cdef class SlowFiles(Files):
    pass
