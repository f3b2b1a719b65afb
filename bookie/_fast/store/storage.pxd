"""A ledger directory as a store, and all stores of a bookie: opened, configured and closed from Python.

Their state is in `stores`.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from bookie._fast.base.types cimport Status
from bookie._fast.cache.pages cimport Region
from bookie._fast.store.stores cimport Storage, Store

# Decide whether the bookie is read-only: it is forced to be, or stores found no space. Any thread.
cdef void stores_judge_space(Storage* stores) noexcept nogil
# Request a checkpoint from the flush thread. Any thread.
cdef void stores_request_flush(Storage* stores) noexcept nogil
# Request one because this store's half that takes adds is full enough. The swap serves all such requests before it:
# one that comes while the checkpoint is on its way there causes no second, early one. Any thread.
cdef void store_request_room(Storage* stores, Store* store) noexcept nogil
# Ask for the pins of a region that no new reader can find: each response that refers to it copies what it needs. The
# region is free when its pins are 0; until then none of them outlives the round of a loop that sees the request.
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
