"""How many connections each peer address has. Shared by all I/O loops; one entry an address that has any.

An IPv4 address and the IPv6 address that maps it are one.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from bookie._fast.base.sync cimport pthread_mutex_t

cdef enum:
    ADDRESS_BYTES = 16           # IPv6

cdef struct Address:
    uint8_t ip[ADDRESS_BYTES]
    int64_t connections
    # atomic
    int64_t handshakes           # of TLS under way
    int64_t urgent               # requests under way that go before others
    Address* next

cdef struct Addresses:
    pthread_mutex_t lock         # guards all
    Address** buckets
    uint32_t size                # power of two, or 0
    uint32_t count
    int64_t per_address_max      # connections; 0: any number

cdef void addresses_init(Addresses* addresses, int64_t per_address_max) noexcept nogil
cdef void addresses_free(Addresses* addresses) noexcept nogil
# The 16 bytes of a sockaddr; anything but IP is all zeros.
cdef void address_bytes(const void* sockaddr, uint8_t* ip) noexcept nogil
# One connection more. NULL: the address has as many as it may, or there is no memory.
cdef Address* address_enter(Addresses* addresses, const uint8_t* ip) noexcept nogil
# One less; the last one frees. NULL is nobody.
cdef void address_leave(Addresses* addresses, Address* address) noexcept nogil
