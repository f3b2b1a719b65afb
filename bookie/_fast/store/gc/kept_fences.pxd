"""The fences of deleted ledgers, kept for a while: a writer that was fenced must not begin such a ledger anew.

In the table `fences` of the index, so that they outlive the process, and in the ledger tables, where a ledger that
comes to be is fenced from the start if its fence is kept. They are read back with the ledgers (DirectoryStore).

Their age is counted in a time of the store's own: how long bookies have run on it, measured by the monotonic clock. The
wall clock may jump by years, and a fence that goes too early lets a fenced writer in.
"""
from libc.stdint cimport int64_t

from bookie._fast.base.types cimport Status
from bookie._fast.store.ledger_table cimport Ledger
from bookie._fast.store.stores cimport Store

# Whether adds to this ledger were refused: fenced, or in limbo, which may hide a fence.
cdef bint needs_fence(const Ledger* ledger) noexcept nogil
# In the open transaction that deletes this ledger: keep its fence, if it has one. NO_MEMORY, or as index_put_fence.
cdef Status fence_keep(Store* store, int64_t ledger_id) noexcept nogil
# Of these ledgers, those that may be deleted now, to the front: the fenced ones as far as their fences can be kept. How
# many.
cdef size_t fences_fit(Store* store, int64_t* ids, size_t count) noexcept nogil
# Drop those of ledgers deleted so long ago, and now and then store the time. As index_commit; *dropped: how many.
cdef Status fences_drop(Store* store, int64_t kept_ms, int64_t* dropped) noexcept nogil
