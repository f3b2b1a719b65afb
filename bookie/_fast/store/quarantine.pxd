"""Ledgers in quarantine: put there by whoever meets bytes that cannot be stored, indexed or trusted; listed; let out.

Such a ledger is not written to and does not deny entries (`ledger_table`), its logs are not collected (`liveness`), and
the bookie serves on. Any thread; the state is guarded by the ledger's shard.
"""
from libc.stdint cimport int64_t

from bookie._fast.index.codec cimport QuarantineReason
from bookie._fast.store.stores cimport Storage

# What `ledger_quarantine` does, with the shard's lock taken here; a flush is asked for, so that it is soon durable.
# False: the ledger is not known here, so nothing of it is served, or it was in quarantine for this reason before.
cdef bint stores_quarantine(Storage* stores, int64_t ledger, QuarantineReason reason) noexcept nogil
