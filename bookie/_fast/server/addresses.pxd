"""The number of connections from each peer address. Shared by all I/O loops; only addresses with connections are kept.

An IPv4 address and the IPv6 address that maps it count as the same.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from bookie._fast.base.sync cimport pthread_mutex_t

cdef enum:
    ADDRESS_BYTES = 16           # IPv6

cdef struct Address:
    uint8_t ip[ADDRESS_BYTES]
    int64_t connections
    # Atomic.
    int64_t handshakes           # TLS handshakes in progress
    int64_t urgent               # urgent requests in progress
    Address* next

cdef struct Addresses:
    pthread_mutex_t lock         # guards the table
    Address** buckets
    uint32_t size                # number of buckets, a power of two, or 0
    uint32_t count
    int64_t per_address_max      # limit on connections; 0 for none

cdef void addresses_init(Addresses* addresses, int64_t per_address_max) noexcept nogil
cdef void addresses_free(Addresses* addresses) noexcept nogil
# Get the 16 bytes of a sockaddr's address; all zeros for other families than IP.
cdef void address_bytes(const void* sockaddr, uint8_t* ip) noexcept nogil
# Count a new connection. Return NULL if the address has reached its limit, or there is no memory.
cdef Address* address_enter(Addresses* addresses, const uint8_t* ip) noexcept nogil
# Count the end of a connection; the address is freed with its last one. NULL is allowed.
cdef void address_leave(Addresses* addresses, Address* address) noexcept nogil
