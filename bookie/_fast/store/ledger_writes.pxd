"""What clients change of a ledger: adds, fences, explicit LACs and write closes. Called by I/O loops.

Ids, LACs and keys beyond `bounds` are refused here with BAD_REQUEST, before anything of them is stored.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from bookie._fast.base.types cimport Status
from bookie._fast.store.stores cimport Storage

cdef enum AddKind:
    ADD_PLAIN = 0
    ADD_RECOVERY = 1             # allowed in spite of fence and limbo
    ADD_REPAIR = 2               # and of quarantine: a good copy of an entry that belongs here

# Add one entry: check key and fence, then put it into cache and journal. OK with the journal group that makes it
# durable (0: nothing to wait for); FULL: retry after the loops are woken; IO_ERROR: the ledger is in quarantine.
cdef Status stores_add(Storage* stores, int64_t ledger, int64_t entry, const uint8_t* key, uint32_t key_size,
                       const uint8_t* data, uint32_t size, AddKind kind, int64_t* group) noexcept nogil
# Fence a ledger. OK with the group to wait for (0: already durable). An unknown ledger is created, fenced, with this
# key. NO_LEDGER: it was fenced and deleted, and its fence is kept.
cdef Status stores_fence(Storage* stores, int64_t ledger, const uint8_t* key, uint32_t key_size,
                         int64_t* group) noexcept nogil
# Store an explicit LAC packet (`ledger, lac, digest`, LAC_PACKET_MAX bytes at most).
cdef Status stores_write_lac(Storage* stores, int64_t ledger, const uint8_t* key, uint32_t key_size,
                             const uint8_t* packet, uint32_t size, int64_t* group) noexcept nogil
# Return a copy of the ledger's explicit LAC packet, which the caller frees; NULL if it has none, or without memory.
cdef uint8_t* stores_explicit_lac(Storage* stores, int64_t ledger, uint32_t* size) noexcept nogil
# Record a write close: the writer adds nothing more. It is advisory and changes neither key nor journal. OK, also for
# an unknown ledger, to which nothing happens; UNAUTHORIZED, BAD_REQUEST.
cdef Status stores_write_close(Storage* stores, int64_t ledger, const uint8_t* key, uint32_t key_size) noexcept nogil
