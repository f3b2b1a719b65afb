/* SHA-1 (FIPS 180-4) on plain memory, for HMAC digests of entries. No allocation, no state of its own; any thread. */
#ifndef BOOKIE_SHA1_H
#define BOOKIE_SHA1_H
#include <stddef.h>
#include <stdint.h>

#define BK_SHA1_BYTES 20
#define BK_SHA1_BLOCK 64

typedef struct {
    uint32_t h[5];
    uint64_t total;                  /* bytes taken in so far */
    uint8_t pending[BK_SHA1_BLOCK];  /* the first total % 64 of them wait for their block */
} bk_sha1;

void bk_sha1_init(bk_sha1 *s);
void bk_sha1_update(bk_sha1 *s, const void *data, size_t size);
/* Writes 20 bytes; `s` is spent afterwards. */
void bk_sha1_final(bk_sha1 *s, uint8_t *out);
#endif
