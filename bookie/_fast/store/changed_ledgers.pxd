"""Writes the records of changed ledgers to the index, in the open transaction of a flush.

A shard's lock is held while a few records are copied, never during a put, which may wait for the disk. A ledger that
changes between copy and commit is put again by the next flush. All calls are made by the thread that flushes, with
Store.writing, which keeps ledgers from being removed; `ledgers_put` between index_begin and index_commit.
"""
from bookie._fast.base.types cimport Status
from bookie._fast.store.stores cimport Store

# Return whether any ledger differs from its record.
cdef bint ledgers_changed(Store* store) noexcept nogil
# Put the records of all ledgers that had changed when this began; call `ledgers_settle` afterwards. Returns NO_MEMORY
# or the result of index_put_ledger.
cdef Status ledgers_put(Store* store) noexcept nogil
# Call after the transaction: if it was not `committed`, its records go into the next one. Also without a put.
cdef void ledgers_settle(Store* store, bint committed) noexcept nogil
