"""Deleting ledgers from one ledger directory, so that nothing of them comes back by flush, cache, LAC or replay.

Index first, memory second, both under `Store.writing`: no flush is under way, and none can put back what it collected
before. The caller has taken a checkpoint, so that the journals behind the mark hold nothing of the ledgers.
"""
from libc.stdint cimport int64_t

from bookie._fast.base.types cimport Status
from bookie._fast.store.stores cimport Store, Storage

cdef enum:
    REMOVE_RUNS_MOST = 20000     # in one transaction
    REMOVE_LEDGERS_MOST = 2000

# Delete ids[count], which belong to this store; *known: how many of them it knew, in memory or by its index alone. OK;
# NO_SPACE: a transaction found none, the ledgers before it are gone; IO_ERROR (the index), and then it is latched. An
# add that comes after a ledger has left memory creates it anew, with the key that it brings. If it was fenced or in
# limbo (module store.gc.kept_fences) its writer's adds are refused, and recovery adds create it fenced. A ledger that
# is fenced while it is deleted stays, empty, until the next time.
cdef Status ledgers_delete(Storage* stores, Store* store, const int64_t* ids, size_t count,
                           int64_t* known) noexcept nogil
