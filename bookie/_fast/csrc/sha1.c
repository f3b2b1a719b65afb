/* SHA-1 with the SHA instructions of x86 if the processor has them, else in plain C. The first block finds out which,
 * so no initialisation is needed. */
#include "sha1.h"

#include <string.h>

static uint32_t rotl(uint32_t v, int n) { return v << n | v >> (32 - n); }

static uint32_t load_be(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return __builtin_bswap32(v);
}

static void store_be(uint8_t *p, uint32_t v) {
    v = __builtin_bswap32(v);
    memcpy(p, &v, 4);
}

static void blocks_plain(uint32_t h[5], const uint8_t *data, size_t count) {
    for (; count; count--, data += BK_SHA1_BLOCK) {
        uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
        for (int i = 0; i < 16; i++) w[i] = load_be(data + 4 * i);
        for (int i = 16; i < 80; i++) w[i] = rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
        for (int i = 0; i < 80; i++) {
            uint32_t f, k;
            if (i < 20) f = d ^ (b & (c ^ d)), k = 0x5a827999;
            else if (i < 40) f = b ^ c ^ d, k = 0x6ed9eba1;
            else if (i < 60) f = (b & c) | (d & (b | c)), k = 0x8f1bbcdc;
            else f = b ^ c ^ d, k = 0xca62c1d6;
            uint32_t t = rotl(a, 5) + f + e + k + w[i];
            e = d, d = c, c = rotl(b, 30), b = a, a = t;
        }
        h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
    }
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

/* There are 20 groups of four rounds. m[g % 4] holds the four schedule words of group g, derived from group 4 on. */
#define GROUP(g, fn)                                                                                                \
    do {                                                                                                            \
        if ((g) >= 4)                                                                                               \
            m[(g) % 4] = _mm_sha1msg2_epu32(                                                                        \
                _mm_xor_si128(_mm_sha1msg1_epu32(m[(g) % 4], m[((g) + 1) % 4]), m[((g) + 2) % 4]), m[((g) + 3) % 4]); \
        __m128i wk = (g) ? _mm_sha1nexte_epu32(last, m[(g) % 4]) : _mm_add_epi32(last, m[0]);                       \
        last = abcd;                                                                                                \
        abcd = _mm_sha1rnds4_epu32(abcd, wk, fn);                                                                   \
    } while (0)
#define FIVE(g, fn) GROUP(g, fn); GROUP(g + 1, fn); GROUP(g + 2, fn); GROUP(g + 3, fn); GROUP(g + 4, fn)

__attribute__((target("sha,sse4.1"))) static void blocks_sha(uint32_t h[5], const uint8_t *data, size_t count) {
    const __m128i swap = _mm_set_epi64x(0x0001020304050607ULL, 0x08090a0b0c0d0e0fULL);
    __m128i abcd = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)h), 0x1b);
    __m128i e = _mm_set_epi32((int)h[4], 0, 0, 0);
    for (; count; count--, data += BK_SHA1_BLOCK) {
        __m128i m[4], start = abcd, last = e;
        for (int i = 0; i < 4; i++)
            m[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(data + 16 * i)), swap);
        FIVE(0, 0);
        FIVE(5, 1);
        FIVE(10, 2);
        FIVE(15, 3);
        e = _mm_sha1nexte_epu32(last, e);
        abcd = _mm_add_epi32(abcd, start);
    }
    _mm_storeu_si128((__m128i *)h, _mm_shuffle_epi32(abcd, 0x1b));
    h[4] = (uint32_t)_mm_extract_epi32(e, 3);
}

static int has_sha(void) {
    static int known; /* 0: not yet determined; racing threads write the same value */
    int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (answer) return answer == 1;
    unsigned a, b = 0, c, d;
    answer = __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 29 & 1 && __builtin_cpu_supports("sse4.1") ? 1 : 2;
    __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    return answer == 1;
}

static void blocks(uint32_t h[5], const uint8_t *data, size_t count) {
    if (has_sha()) blocks_sha(h, data, count);
    else blocks_plain(h, data, count);
}
#else
#define blocks blocks_plain
#endif

void bk_sha1_init(bk_sha1 *s) {
    static const uint32_t start[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    memcpy(s->h, start, sizeof start);
    s->total = 0;
}

void bk_sha1_update(bk_sha1 *s, const void *data, size_t size) {
    const uint8_t *p = data;
    size_t held = s->total % BK_SHA1_BLOCK;
    if (size == 0) return; /* data may be NULL then, which memcpy does not take */
    s->total += size;
    if (held) {
        size_t part = BK_SHA1_BLOCK - held < size ? BK_SHA1_BLOCK - held : size;
        memcpy(s->pending + held, p, part);
        p += part, size -= part, held += part;
        if (held < BK_SHA1_BLOCK) return;
        blocks(s->h, s->pending, 1);
    }
    blocks(s->h, p, size / BK_SHA1_BLOCK);
    p += size / BK_SHA1_BLOCK * BK_SHA1_BLOCK;
    if (size % BK_SHA1_BLOCK) memcpy(s->pending, p, size % BK_SHA1_BLOCK);
}

void bk_sha1_final(bk_sha1 *s, uint8_t *out) {
    uint64_t bits = s->total * 8;
    size_t held = s->total % BK_SHA1_BLOCK;
    s->pending[held++] = 0x80;
    if (held > BK_SHA1_BLOCK - 8) {
        memset(s->pending + held, 0, BK_SHA1_BLOCK - held);
        blocks(s->h, s->pending, 1);
        held = 0;
    }
    memset(s->pending + held, 0, BK_SHA1_BLOCK - 8 - held);
    store_be(s->pending + 56, (uint32_t)(bits >> 32));
    store_be(s->pending + 60, (uint32_t)bits);
    blocks(s->h, s->pending, 1);
    for (int i = 0; i < 5; i++) store_be(out + 4 * i, s->h[i]);
}
