"""The last entry of a ledger that earlier processes wrote: asked of the index once, by who needs it first.

Until then adds to the ledger count as written over older ones. Threads with an IndexReader: read pool, flush.
"""
from libc.stdint cimport int64_t

from bookie._fast.base.types cimport Status
from bookie._fast.index.location cimport IndexReader
from bookie._fast.store.stores cimport Store

# OK, also for an unknown ledger; IO_ERROR when the index cannot be read, and then nothing is learnt.
cdef Status learn_last(Store* store, IndexReader* reader, int64_t ledger_id) noexcept nogil
# The same with a reader for this question alone.
cdef Status learn_last_alone(Store* store, int64_t ledger_id) noexcept nogil
