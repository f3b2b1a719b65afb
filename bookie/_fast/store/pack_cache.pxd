"""A write cache whose disk is full, packed: every record once, in as few pages as it takes.

Pages double with what a ledger writes, and a record that was journaled twice may lie in both halves, so the same
records take more or less memory by the order they come in. A replay has another order than the adds had (carry_over);
what fitted into memory before a crash is to fit again. Runs during the first pass of a replay, alone.
"""
from bookie._fast.store.stores cimport Store

# Pack both halves; the one with more room takes the adds. False: that won too little to go on with, or memory lacked.
cdef bint pack_cache(Store* store) noexcept nogil
