"""One ledger directory as a store, and all of a bookie's stores.

What they own stands in `stores`; the handles are made and closed by Python.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from bookie._fast.base.types cimport Status
from bookie._fast.cache.pages cimport Region
from bookie._fast.store.stores cimport Store, Storage

# Say anew whether the bookie is read-only, from what forces it and from which stores found no space. Any thread.
cdef void stores_judge_space(Storage* stores) noexcept nogil
# Ask the flush thread to work; any thread.
cdef void stores_request_flush(Storage* stores) noexcept nogil
# Want a region back that nobody can find any more: whoever points into it copies what it needs. The region is free when
# its pins are 0; until it is reused, none of them outlives the round of a loop in which it is seen.
cdef void stores_want_back(Storage* stores, Region* region) noexcept nogil

cdef class DirectoryStore:
    cdef Store* store
    cdef object files
    cdef list segments
    cdef readonly str directory
    cdef bytes encoded_directory

cdef class StorageEngine:
    cdef Storage* stores
    cdef list handles
    cdef list journals
