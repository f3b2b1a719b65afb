"""Which entries of a ledger are stored here, as maximal ranges: from the write caches' runs, then from the index's.

Any Python thread, without the GIL. Memory grows with the ranges, not with the entries; a run with gaps counts as many.
"""
from libc.stdint cimport int64_t

from bookie._fast.base.types cimport Status
from bookie._fast.store.stores cimport Storage

cdef struct EntryRange:
    int64_t first
    int64_t last

cdef struct EntryRanges:
    EntryRange* items        # ascending, at least one id between two of them, once `ranges_collect` is done
    size_t count
    size_t room

# OK, NO_LEDGER, NO_MEMORY, or what the index answers. `ranges` starts zeroed; whatever the answer, free its items.
cdef Status ranges_collect(Storage* stores, int64_t ledger, EntryRanges* ranges) noexcept nogil
