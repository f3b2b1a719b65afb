/* SHA-1 (FIPS 180-4) in memory, for HMAC digests of entries. Allocates nothing; any thread, with its own bk_sha1. */
#ifndef BOOKIE_SHA1_H
#define BOOKIE_SHA1_H
#include <stddef.h>
#include <stdint.h>

#define BK_SHA1_BYTES 20
#define BK_SHA1_BLOCK 64

typedef struct {
    uint32_t h[5];
    uint64_t total;                  /* bytes hashed or pending so far */
    uint8_t pending[BK_SHA1_BLOCK];  /* the first total % 64 bytes belong to an incomplete block */
} bk_sha1;

void bk_sha1_init(bk_sha1 *s);
void bk_sha1_update(bk_sha1 *s, const void *data, size_t size);
/* Write the digest, 20 bytes, to `out`. `s` cannot be used afterwards until bk_sha1_init. */
void bk_sha1_final(bk_sha1 *s, uint8_t *out);
#endif
