"""The tables of an index besides its runs: ledger records, fences of deleted ledgers, and ledgers in doubt.

Puts and deletes happen inside the open write transaction, like those of `index.writes`; `index.location` reads them.
"""
from libc.stdint cimport int64_t

from bookie._fast.base.types cimport Status
from bookie._fast.index.codec cimport LedgerRecord
from bookie._fast.index.location cimport LocationIndex

cdef Status index_put_ledger(LocationIndex* index, const LedgerRecord* record) noexcept nogil
cdef Status index_put_fence(LocationIndex* index, int64_t ledger, int64_t deleted_ms) noexcept nogil
cdef Status index_delete_fence(LocationIndex* index, int64_t ledger) noexcept nogil
# These change the table only; the caller maintains the Doubts in memory.
cdef Status index_put_doubt(LocationIndex* index, int64_t ledger, bint lasting) noexcept nogil
cdef Status index_delete_doubt(LocationIndex* index, int64_t ledger) noexcept nogil
# Delete the ledger's record and all its runs.
cdef Status index_delete_ledger(LocationIndex* index, int64_t ledger) noexcept nogil
