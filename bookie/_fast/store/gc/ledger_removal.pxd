"""Deletes ledgers from one ledger directory, so that neither flush, cache, LAC nor replay can restore them.

First from the index, then from memory, both under `Store.writing`: no flush is in progress, and none can put back what
it collected before. The caller has taken a checkpoint, so the journals after the mark hold nothing of the ledgers.
"""
from libc.stdint cimport int64_t

from bookie._fast.base.types cimport Status
from bookie._fast.store.stores cimport Storage, Store

cdef enum:
    REMOVE_RUNS_MOST = 20000     # in one transaction
    REMOVE_LEDGERS_MOST = 2000

# Delete ids[count], which belong to this store; *known gets the number of those that memory knew. Return OK; NO_SPACE,
# with the ledgers before the failed transaction deleted; or IO_ERROR, which the index latches. An add that arrives
# after a ledger has left memory creates it anew with the key of the add. If the ledger was fenced or in limbo (see
# kept_fences), its writer's adds are refused, and recovery adds create it fenced. A ledger that is fenced during its
# deletion stays, empty, until the next one.
cdef Status ledgers_delete(Storage* stores, Store* store, const int64_t* ids, size_t count,
                           int64_t* known) noexcept nogil
