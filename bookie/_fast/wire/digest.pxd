"""The digest of an entry: CRC32, HMAC-SHA1, CRC32C or none. A Digest is constant after digest_init; any thread."""
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from bookie._fast.base.types cimport Status

cdef extern from "csrc/sha1.h" nogil:
    ctypedef struct bk_sha1:
        pass

cdef enum:
    # The numbers used in ledger metadata.
    DIGEST_CRC32 = 1
    DIGEST_HMAC = 2
    DIGEST_CRC32C = 3
    DIGEST_DUMMY = 4

    DIGEST_BYTES_MAX = 20
    ENTRY_FIXED_BYTES = 32       # ledger, entry, LAC, length; the digest and the payload follow
    MAC_KEY_BYTES = 20

cdef struct Digest:
    int kind
    uint32_t size                # digest bytes in an entry: 8, 20, 4 or 0
    bk_sha1 inner                # HMAC: the state after the key block
    bk_sha1 outer

# Return OK, or BAD_REQUEST for an unknown kind. `mac_key` has MAC_KEY_BYTES; only HMAC uses it.
cdef Status digest_init(Digest* digest, int kind, const uint8_t* mac_key) noexcept nogil
# Write the digest of `head` followed by `data` as it is stored in an entry: digest.size bytes.
cdef void digest_sum(const Digest* digest, const uint8_t* head, size_t head_size, const uint8_t* data, size_t size,
                     uint8_t* out) noexcept nogil
# Return whether the digest of `entry` is right. `size` is at least ENTRY_FIXED_BYTES + digest.size; the caller
# checks.
cdef bint digest_holds(const Digest* digest, const uint8_t* entry, size_t size) noexcept nogil

cdef class Digester:
    # The argument by which Python passes a digest to modules that build or verify entries.
    cdef Digest digest
