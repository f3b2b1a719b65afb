"""File operations that fail on a plan, for tests: real calls, wrapped.

Built only with BOOKIE_FAULTS=1 or BOOKIE_DEBUG=1. FileOps carries no context, so there is one plan and one trace a
process; every FaultyFiles shares them. Thread-safe.
"""
from bookie._fast.base.file cimport Files

cdef class FaultyFiles(Files):
    pass
