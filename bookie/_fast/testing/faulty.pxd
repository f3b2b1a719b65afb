"""File operations that fail as planned, for tests: the real calls, wrapped.

Built only with BOOKIE_FAULTS=1 or BOOKIE_DEBUG=1. FileOps carries no context, so a process has one plan and one trace,
which all FaultyFiles share. Any thread.
"""
from bookie._fast.base.file cimport Files

cdef class FaultyFiles(Files):
    pass
