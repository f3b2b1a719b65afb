"""The fences of deleted ledgers, kept for a while: a writer that was fenced must not begin its ledger anew.

They are kept in the index's table `fences`, so that they outlive the process, and in the ledger tables, where a new
ledger is fenced from the start if its fence is kept. DirectoryStore loads them together with the ledgers.

Their age is measured in a time of the store's own: how long bookies have run on it, by the monotonic clock. The wall
clock may jump by years, and a fence that is dropped too early lets a fenced writer in. A fence that refused an add or
answered a fencing read is kept as long again from then on (decision 0028).
"""
from libc.stdint cimport int64_t

from bookie._fast.base.types cimport Status
from bookie._fast.store.ledger_table cimport Ledger
from bookie._fast.store.stores cimport Store

# Return whether adds to this ledger may have been refused: it is fenced, or in limbo, which may hide a fence.
cdef bint needs_fence(const Ledger* ledger) noexcept nogil
# Keep the fence of this ledger, if it has one, in the open transaction that deletes it. Return NO_MEMORY, or the
# result of index_put_fence.
cdef Status fence_keep(Store* store, int64_t ledger_id) noexcept nogil
# Move the ledgers that may be deleted now to the front of `ids` and return their number: all that are not fenced, and
# fenced ones as far as their fences can be kept.
cdef size_t fences_fit(Store* store, int64_t* ids, size_t count) noexcept nogil
# Drop the fences that nobody has needed for `kept_ms` since their ledgers were deleted, store the times of those that
# were needed, and now and then the time. Return the result of index_commit; *dropped gets their number.
cdef Status fences_drop(Store* store, int64_t kept_ms, int64_t* dropped) noexcept nogil
