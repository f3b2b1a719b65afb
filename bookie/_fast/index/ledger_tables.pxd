"""The tables of an index beside its runs: records of ledgers, fences of deleted ones, ledgers in doubt.

Puts and deletes inside the open write transaction, as those of `index.location`; they are read there.
"""
from libc.stdint cimport int64_t

from bookie._fast.base.types cimport Status
from bookie._fast.index.codec cimport LedgerRecord
from bookie._fast.index.location cimport LocationIndex

cdef Status index_put_ledger(LocationIndex* index, const LedgerRecord* record) noexcept nogil
cdef Status index_put_fence(LocationIndex* index, int64_t ledger, int64_t deleted_ms) noexcept nogil
cdef Status index_delete_fence(LocationIndex* index, int64_t ledger) noexcept nogil
# In the table alone; what is in memory is its caller's.
cdef Status index_put_doubt(LocationIndex* index, int64_t ledger, bint lasting) noexcept nogil
cdef Status index_delete_doubt(LocationIndex* index, int64_t ledger) noexcept nogil
# The record and every run.
cdef Status index_delete_ledger(LocationIndex* index, int64_t ledger) noexcept nogil
