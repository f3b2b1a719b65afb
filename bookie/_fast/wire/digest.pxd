"""The digest of an entry: CRC32, HMAC-SHA1, CRC32C or none. A Digest is constant after digest_init; any thread."""
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from bookie._fast.base.types cimport Status

cdef extern from "csrc/sha1.h" nogil:
    ctypedef struct bk_sha1:
        pass

cdef enum:
    # The numbers of the ledger metadata.
    DIGEST_CRC32 = 1
    DIGEST_HMAC = 2
    DIGEST_CRC32C = 3
    DIGEST_DUMMY = 4

    DIGEST_BYTES_MAX = 20
    ENTRY_FIXED_BYTES = 32       # ledger, entry, LAC, length; then the digest, then the payload
    MAC_KEY_BYTES = 20

cdef struct Digest:
    int kind
    uint32_t size                # digest bytes in an entry: 8, 20, 4 or 0
    bk_sha1 inner                # HMAC: the key block already taken in
    bk_sha1 outer

# BAD_REQUEST for an unknown kind. `mac_key` has MAC_KEY_BYTES; only HMAC looks at it.
cdef Status digest_init(Digest* digest, int kind, const uint8_t* mac_key) noexcept nogil
# The digest of `head` followed by `data`, as it stands in an entry; writes digest.size bytes.
cdef void digest_sum(const Digest* digest, const uint8_t* head, size_t head_size, const uint8_t* data, size_t size,
                     uint8_t* out) noexcept nogil
# `entry` as stored, ENTRY_FIXED_BYTES + digest.size or longer (the caller checked): does its digest hold?
cdef bint digest_holds(const Digest* digest, const uint8_t* entry, size_t size) noexcept nogil

cdef class Digester:
    # What Python hands to compiled modules that build or verify entries.
    cdef Digest digest
