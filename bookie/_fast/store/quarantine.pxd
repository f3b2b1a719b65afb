"""Ledgers in quarantine: put there when bytes cannot be stored, indexed or trusted; listed; released.

Such a ledger takes no writes and denies no entries (`ledger_table`), and its logs are not collected (`liveness`),
while the bookie continues to serve. Any thread; the state is guarded by the ledger's shard.
"""
from libc.stdint cimport int64_t

from bookie._fast.index.codec cimport QuarantineReason
from bookie._fast.store.stores cimport Storage

# Call `ledger_quarantine` with the shard's lock, and request a flush so that it is soon durable. Return False if the
# ledger is unknown here, so that nothing of it is served, or is in quarantine for this reason already.
cdef bint stores_quarantine(Storage* stores, int64_t ledger, QuarantineReason reason) noexcept nogil
