"""Where entries of a ledger lie in entry logs, as the index says; what only memory holds yet has no place.

Any Python thread, without the GIL. Each look-up sees the latest commit, so a compaction may move an entry between two.
"""
from libc.stdint cimport int64_t, uint32_t

from bookie._fast.base.types cimport Status
from bookie._fast.index.location cimport IndexHit
from bookie._fast.store.stores cimport Storage

# Up to `most` places from entry `first` on, ascending, into `hits`; *found of them. OK, or what the index answers.
cdef Status places_find(Storage* stores, int64_t ledger, int64_t first, uint32_t most, IndexHit* hits,
                        uint32_t* found) noexcept nogil
