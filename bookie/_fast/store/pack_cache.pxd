"""Packs a write cache whose disk is full: each record once, in as few pages as possible.

Pages double with what a ledger writes, and a record that was journaled twice may be in both halves, so the memory that
the same records take depends on the order of their arrival. A replay has another order than the adds had (carry_over),
but what fitted into memory before a crash must fit again. Runs alone, during the first pass of a replay.
"""
from bookie._fast.store.stores cimport Store

# Pack both halves and let the one with more room take the adds. Return False if it gained too little, or without
# memory.
cdef bint pack_cache(Store* store) noexcept nogil
