"""The records of changed ledgers on their way into the index, in the open transaction of a flush.

A shard's lock is held for the copy of a few records, never over a put, which may wait for the disk. A ledger that
changes between copy and commit is put again by the next flush. All calls: the flush thread, with Store.writing, which
keeps the ledgers from being removed; `ledgers_put` inside index_begin and index_commit.
"""
from bookie._fast.base.types cimport Status
from bookie._fast.store.stores cimport Store

# Whether any ledger differs from its record.
cdef bint ledgers_changed(Store* store) noexcept nogil
# Put the records of all that had changed when this began. As index_put_ledger, or NO_MEMORY. `ledgers_settle` follows.
cdef Status ledgers_put(Store* store) noexcept nogil
# The transaction was committed, or came to nothing: then what it held goes into the next one. Also without a put.
cdef void ledgers_settle(Store* store, bint committed) noexcept nogil
