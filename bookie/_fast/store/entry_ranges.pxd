"""Which entries of a ledger are stored here, as maximal ranges: from the write cache's runs, then from the index.

Any Python thread, without the GIL. Memory grows with the ranges, not with the entries; a run with gaps is several
ranges.
"""
from libc.stdint cimport int64_t

from bookie._fast.base.types cimport Status
from bookie._fast.store.stores cimport Storage

cdef struct EntryRange:
    int64_t first
    int64_t last

cdef struct EntryRanges:
    EntryRange* items        # after `ranges_collect` ascending, with at least one id between two of them
    size_t count
    size_t room

# Collect the ranges. Return OK, NO_LEDGER, NO_MEMORY, or the index's error. `ranges` is zeroed before, and the caller
# frees its items whatever the result.
cdef Status ranges_collect(Storage* stores, int64_t ledger, EntryRanges* ranges) noexcept nogil
