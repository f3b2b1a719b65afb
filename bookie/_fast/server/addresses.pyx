"""Connections by peer address: a hash table under a lock, used when a connection begins and ends."""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from bookie._fast.base.sync cimport pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock

cdef extern from "<netinet/in.h>" nogil:
    struct in_addr:
        uint32_t s_addr
    struct sockaddr_in:
        uint16_t sin_family
        in_addr sin_addr
    struct in6_addr:
        uint8_t s6_addr[16]
    struct sockaddr_in6:
        uint16_t sin6_family
        in6_addr sin6_addr
    int AF_INET
    int AF_INET6

cdef enum:
    BUCKETS_FIRST = 64
    MAPPED_AT = 12               # offset of the IPv4 address in ::ffff:a.b.c.d


cdef void addresses_init(Addresses* addresses, int64_t per_address_max) noexcept nogil:
    memset(addresses, 0, sizeof(Addresses))
    addresses.per_address_max = per_address_max
    pthread_mutex_init(&addresses.lock, NULL)


cdef void addresses_free(Addresses* addresses) noexcept nogil:
    cdef uint32_t i
    cdef Address* at
    cdef Address* following
    for i in range(addresses.size):
        at = addresses.buckets[i]
        while at != NULL:
            following = at.next
            free(at)
            at = following
    free(addresses.buckets)
    addresses.buckets = NULL
    addresses.size = addresses.count = 0


cdef void address_bytes(const void* sockaddr, uint8_t* ip) noexcept nogil:
    cdef const sockaddr_in* four = <const sockaddr_in*> sockaddr
    cdef const sockaddr_in6* six = <const sockaddr_in6*> sockaddr
    memset(ip, 0, ADDRESS_BYTES)
    if four.sin_family == AF_INET:
        ip[MAPPED_AT - 2] = ip[MAPPED_AT - 1] = 0xFF
        memcpy(ip + MAPPED_AT, &four.sin_addr.s_addr, 4)
    elif four.sin_family == AF_INET6:
        memcpy(ip, six.sin6_addr.s6_addr, ADDRESS_BYTES)


cdef uint64_t mix(const uint8_t* ip) noexcept nogil:
    cdef uint64_t parts[2]
    cdef uint64_t h
    memcpy(parts, ip, ADDRESS_BYTES)
    h = (parts[0] ^ (parts[1] << 1 | parts[1] >> 63)) * <uint64_t> 0x9E3779B97F4A7C15
    return h ^ (h >> 29)


cdef bint grow(Addresses* addresses) noexcept nogil:
    """Make room for one more; without memory an existing table only gets denser."""
    cdef uint32_t size = addresses.size * 2 if addresses.size else BUCKETS_FIRST
    cdef uint32_t i
    cdef uint64_t to
    cdef Address* at
    cdef Address* following
    cdef Address** buckets
    if addresses.count < addresses.size:
        return True
    buckets = <Address**> calloc(size, sizeof(Address*))
    if buckets == NULL:
        return addresses.size > 0
    for i in range(addresses.size):
        at = addresses.buckets[i]
        while at != NULL:
            following = at.next
            to = mix(at.ip) & (size - 1)
            at.next = buckets[to]
            buckets[to] = at
            at = following
    free(addresses.buckets)
    addresses.buckets = buckets
    addresses.size = size
    return True


cdef Address* enter_locked(Addresses* addresses, const uint8_t* ip) noexcept nogil:
    cdef Address* address = NULL
    cdef uint64_t to
    if addresses.size:
        address = addresses.buckets[mix(ip) & (addresses.size - 1)]
        while address != NULL and memcmp(address.ip, ip, ADDRESS_BYTES) != 0:
            address = address.next
    if address == NULL:
        if not grow(addresses):
            return NULL
        address = <Address*> calloc(1, sizeof(Address))
        if address == NULL:
            return NULL
        memcpy(address.ip, ip, ADDRESS_BYTES)
        to = mix(ip) & (addresses.size - 1)
        address.next = addresses.buckets[to]
        addresses.buckets[to] = address
        addresses.count += 1
    elif addresses.per_address_max and address.connections >= addresses.per_address_max:
        return NULL
    address.connections += 1
    return address


cdef Address* address_enter(Addresses* addresses, const uint8_t* ip) noexcept nogil:
    cdef Address* address
    pthread_mutex_lock(&addresses.lock)
    address = enter_locked(addresses, ip)
    pthread_mutex_unlock(&addresses.lock)
    return address


cdef void address_leave(Addresses* addresses, Address* address) noexcept nogil:
    cdef Address** link
    if address == NULL:
        return
    pthread_mutex_lock(&addresses.lock)
    address.connections -= 1
    if address.connections == 0:
        link = &addresses.buckets[mix(address.ip) & (addresses.size - 1)]
        while link[0] != address:
            link = &link[0].next
        link[0] = address.next
        free(address)
        addresses.count -= 1
    pthread_mutex_unlock(&addresses.lock)
