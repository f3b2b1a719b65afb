"""The last entry of a ledger that earlier processes wrote: looked up in the index once, when it is first needed.

Until then, adds to the ledger count as possibly overwriting older entries. For threads with an IndexReader: read pool
and flush.
"""
from libc.stdint cimport int64_t

from bookie._fast.base.types cimport Status
from bookie._fast.index.location cimport IndexReader
from bookie._fast.store.stores cimport Store

# Look it up. OK, also for an unknown ledger; IO_ERROR if the index cannot be read, with nothing learnt.
cdef Status learn_last(Store* store, IndexReader* reader, int64_t ledger_id) noexcept nogil
