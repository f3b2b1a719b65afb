"""Where the entries of a ledger lie in entry logs, by the index; entries that are only in memory have no place.

Any Python thread, without the GIL. Each look-up sees the latest commit, so an entry may have been moved since the
last.
"""
from libc.stdint cimport int64_t, uint32_t

from bookie._fast.base.types cimport Status
from bookie._fast.index.location cimport IndexHit
from bookie._fast.store.stores cimport Storage

# Write up to `most` places from entry `first` on, ascending, to `hits`, *found of them. Return OK or the index's
# error.
cdef Status places_find(Storage* stores, int64_t ledger, int64_t first, uint32_t most, IndexHit* hits,
                        uint32_t* found) noexcept nogil
