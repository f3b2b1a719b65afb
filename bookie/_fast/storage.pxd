"""One ledger directory as a store, and all of a bookie's stores: adds, fences and explicit LACs.

What they own stands in `stores`. Adds and the like come from I/O loops; the rooms are made and closed by Python.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from bookie._fast.pages cimport Region
from bookie._fast.stores cimport Store, Stores
from bookie._fast.types cimport Status

cdef enum AddKind:
    ADD_PLAIN = 0
    ADD_RECOVERY = 1             # passes fence and limbo
    ADD_REPAIR = 2               # passes quarantine as well: a good copy of an entry that belongs here

# Add one entry: key, fence, cache, journal. OK with the journal group that makes it durable (0: nothing to wait for);
# FULL: try again after the loops are woken. IO_ERROR: the ledger is in quarantine. BAD_REQUEST: ids or LAC are beyond
# `bounds`.
cdef Status stores_add(Stores* stores, int64_t ledger, int64_t entry, const uint8_t* key, uint32_t key_size,
                       const uint8_t* data, uint32_t size, AddKind kind, int64_t* group) noexcept nogil
# Fence: OK with the group to wait for (0: long durable). Creates an unknown ledger, fenced, with this key.
cdef Status stores_fence(Stores* stores, int64_t ledger, const uint8_t* key, uint32_t key_size,
                         int64_t* group) noexcept nogil
# Store an explicit LAC packet (`ledger, lac, digest`, LAC_PACKET_MAX bytes at most).
cdef Status stores_write_lac(Stores* stores, int64_t ledger, const uint8_t* key, uint32_t key_size,
                             const uint8_t* packet, uint32_t size, int64_t* group) noexcept nogil
# A copy of the ledger's explicit LAC packet, for the caller to free; NULL: it has none, or no memory.
cdef uint8_t* stores_explicit_lac(Stores* stores, int64_t ledger, uint32_t* size) noexcept nogil
# The writer says that nothing follows. OK, also for an unknown ledger, to which nothing happens; UNAUTHORIZED.
cdef Status stores_write_close(Stores* stores, int64_t ledger, const uint8_t* key, uint32_t key_size) noexcept nogil
# Say anew whether the bookie is read-only, from what forces it and from which stores found no space. Any thread.
cdef void stores_judge_space(Stores* stores) noexcept nogil
# Ask the flush thread to work; any thread.
cdef void stores_request_flush(Stores* stores) noexcept nogil
# Want a region back that nobody can find any more: whoever points into it copies what it needs. The region is free when
# its pins are 0; until it is reused, none of them outlives the round of a loop in which it is seen.
cdef void stores_want_back(Stores* stores, Region* region) noexcept nogil

cdef class StoreRoom:
    cdef Store* store
    cdef object files
    cdef list segments
    cdef readonly str directory
    cdef bytes encoded_directory

cdef class StoresRoom:
    cdef Stores* stores
    cdef list rooms
    cdef list journals
