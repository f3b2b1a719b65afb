"""Digests of entries, computed over header and payload without copying them. Any thread."""
from libc.string cimport memcmp, memcpy, memset

from bookie._fast.base.crc cimport crc32, crc32c
from bookie._fast.base.cursor cimport store_u32, store_u64
from bookie._fast.base.types cimport BAD_REQUEST, OK

cdef extern from "csrc/sha1.h" nogil:
    enum:
        BK_SHA1_BYTES
        BK_SHA1_BLOCK
    void bk_sha1_init(bk_sha1*) noexcept
    void bk_sha1_update(bk_sha1*, const void*, size_t) noexcept
    void bk_sha1_final(bk_sha1*, uint8_t*) noexcept


cdef void hmac_key(bk_sha1* state, const uint8_t* key, uint8_t pad) noexcept nogil:
    cdef uint8_t block[BK_SHA1_BLOCK]
    cdef int i
    memset(block, pad, sizeof(block))
    for i in range(MAC_KEY_BYTES):
        block[i] ^= key[i]
    bk_sha1_init(state)
    bk_sha1_update(state, block, sizeof(block))


cdef Status digest_init(Digest* digest, int kind, const uint8_t* mac_key) noexcept nogil:
    memset(digest, 0, sizeof(Digest))
    digest.kind = kind
    if kind == DIGEST_CRC32C:
        digest.size = 4
    elif kind == DIGEST_CRC32:
        digest.size = 8
    elif kind == DIGEST_HMAC:
        digest.size = BK_SHA1_BYTES
        hmac_key(&digest.inner, mac_key, 0x36)
        hmac_key(&digest.outer, mac_key, 0x5C)
    elif kind != DIGEST_DUMMY:
        return BAD_REQUEST
    return OK


cdef void hmac_sum(const Digest* digest, const uint8_t* head, size_t head_size, const uint8_t* data, size_t size,
                   uint8_t* out) noexcept nogil:
    cdef bk_sha1 state
    cdef uint8_t inner[BK_SHA1_BYTES]
    memcpy(&state, &digest.inner, sizeof(bk_sha1))
    bk_sha1_update(&state, head, head_size)
    bk_sha1_update(&state, data, size)
    bk_sha1_final(&state, inner)
    memcpy(&state, &digest.outer, sizeof(bk_sha1))
    bk_sha1_update(&state, inner, sizeof(inner))
    bk_sha1_final(&state, out)


cdef void digest_sum(const Digest* digest, const uint8_t* head, size_t head_size, const uint8_t* data, size_t size,
                     uint8_t* out) noexcept nogil:
    if digest.kind == DIGEST_CRC32C:
        store_u32(out, crc32c(crc32c(0, head, head_size), data, size))
    elif digest.kind == DIGEST_CRC32:
        store_u64(out, crc32(crc32(0, head, head_size), data, size))
    elif digest.kind == DIGEST_HMAC:
        hmac_sum(digest, head, head_size, data, size, out)


cdef bint digest_holds(const Digest* digest, const uint8_t* entry, size_t size) noexcept nogil:
    cdef uint8_t expected[DIGEST_BYTES_MAX]
    cdef size_t payload_at = ENTRY_FIXED_BYTES + digest.size
    digest_sum(digest, entry, ENTRY_FIXED_BYTES, entry + payload_at, size - payload_at, expected)
    return memcmp(expected, entry + ENTRY_FIXED_BYTES, digest.size) == 0


cdef class Digester:
    """One kind of digest with its key, for compiled modules. Immutable; any thread.

    `kind` is 1 (CRC32), 2 (HMAC), 3 (CRC32C) or 4 (DUMMY), `mac_key` the 20 bytes of SHA1('mac' + password).
    ValueError for anything else.
    """

    def __init__(self, int kind, const uint8_t[::1] mac_key):
        if mac_key.shape[0] != MAC_KEY_BYTES:
            raise ValueError(f"mac_key has {mac_key.shape[0]} bytes, not the {MAC_KEY_BYTES} of SHA1('mac' + password)")
        if digest_init(&self.digest, kind, &mac_key[0]) != OK:
            raise ValueError(f"digest kind {kind} is unknown; use 1 (CRC32), 2 (HMAC), 3 (CRC32C) or 4 (DUMMY)")

    @property
    def kind(self):
        return self.digest.kind

    @property
    def size(self):
        """The number of digest bytes in an entry."""
        return self.digest.size

    def sum(self, const uint8_t[::1] head, const uint8_t[::1] data):
        """Return the digest of `head` followed by `data`."""
        cdef uint8_t out[DIGEST_BYTES_MAX]
        cdef const uint8_t* head_at = &head[0] if head.shape[0] else NULL
        cdef const uint8_t* data_at = &data[0] if data.shape[0] else NULL
        with nogil:
            digest_sum(&self.digest, head_at, head.shape[0], data_at, data.shape[0], out)
        return (<const char*> out)[:self.digest.size]
