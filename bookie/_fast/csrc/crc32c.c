/*
 * CRC32C with the processor's CRC instruction on three interleaved streams, and slicing-by-8 tables for processors
 * without it and for CRC32. Any thread; the tables are constant after crc_init. Callers own the data.
 *
 * Why three streams: the processor can start the instruction on 8 more bytes every cycle, but its result takes three
 * cycles, so a single chain of them runs at a third of the speed. A block of 3 * n words is cut into thirds, each with
 * its own chain. The first two results are then shifted by the length of the words that follow them:
 * crc(A B) = crc(A) * x^bits(B) + crc(B), in polynomials modulo P. One carry-less multiplication by a constant does the
 * shift, and the CRC instruction reduces the product. Since a reflected product has one factor x too many and the
 * reduction adds x^32, the constant for n words is x^(64 n - 33).
 */
#include "crc32c.h"

#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#include <wmmintrin.h>
#define HARDWARE "sse4.2"
#define TARGET __attribute__((target("sse4.2,pclmul")))
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <arm_neon.h>
#include <sys/auxv.h>
#define HARDWARE "armv8-crc"
#define TARGET __attribute__((target("+crc+crypto")))
#endif

enum {
    STREAM_WORDS_MAX = 256, /* longest third: bounds the table of constants, 4 KiB of which stay in the cache */
    STREAM_WORDS_MIN = 6    /* with fewer, the shifts cost more than they save */
};

static const uint32_t CASTAGNOLI = 0x82F63B78u; /* both reflected: bit 31 is x^0 */
static const uint32_t IEEE = 0xEDB88320u;

static uint32_t castagnoli_slices[8][256];
static uint32_t ieee_slices[8][256];
static uint32_t move_words[2 * STREAM_WORDS_MAX + 1]; /* x^(64 n - 33) mod P */

crc_fn crc32c_best = crc32c_table;

static void fill_slices(uint32_t slices[8][256], uint32_t polynomial) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (polynomial & (0u - (crc & 1)));
        slices[0][byte] = crc;
    }
    for (int slice = 1; slice < 8; slice++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = slices[slice - 1][byte];
            slices[slice][byte] = (before >> 8) ^ slices[0][before & 0xFF];
        }
}

static uint64_t load_little(const uint8_t *pos) {
    uint64_t word;
    memcpy(&word, pos, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* Update the CRC register with `size` bytes, without the inversions before and after. */
static uint32_t advance(uint32_t slices[8][256], uint32_t crc, const uint8_t *pos, size_t size) {
    for (; size >= 8; pos += 8, size -= 8) {
        uint64_t word = load_little(pos) ^ crc;
        crc = slices[7][word & 0xFF] ^ slices[6][(word >> 8) & 0xFF] ^ slices[5][(word >> 16) & 0xFF] ^
              slices[4][(word >> 24) & 0xFF] ^ slices[3][(word >> 32) & 0xFF] ^ slices[2][(word >> 40) & 0xFF] ^
              slices[1][(word >> 48) & 0xFF] ^ slices[0][word >> 56];
    }
    for (; size > 0; pos++, size--)
        crc = (crc >> 8) ^ slices[0][(crc ^ *pos) & 0xFF];
    return crc;
}

uint32_t crc32c_table(uint32_t crc, const void *data, size_t size) {
    return ~advance(castagnoli_slices, ~crc, data, size);
}

uint32_t crc32_table(uint32_t crc, const void *data, size_t size) {
    return ~advance(ieee_slices, ~crc, data, size);
}

#ifdef HARDWARE

#if defined(__x86_64__)
TARGET static inline uint64_t step_word(uint64_t crc, const uint8_t *pos) {
    return _mm_crc32_u64(crc, load_little(pos));
}

TARGET static inline uint64_t step_byte(uint64_t crc, uint8_t byte) {
    return _mm_crc32_u8((uint32_t)crc, byte);
}

TARGET static inline uint64_t product(uint64_t crc, uint32_t constant) {
    __m128i wide = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc), _mm_cvtsi32_si128((int)constant), 0);
    return (uint64_t)_mm_cvtsi128_si64(wide);
}

TARGET static inline uint64_t reduce(uint64_t wide) {
    return _mm_crc32_u64(0, wide);
}

static int processor_can(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}
#else
TARGET static inline uint64_t step_word(uint64_t crc, const uint8_t *pos) {
    return __crc32cd((uint32_t)crc, load_little(pos));
}

TARGET static inline uint64_t step_byte(uint64_t crc, uint8_t byte) {
    return __crc32cb((uint32_t)crc, byte);
}

TARGET static inline uint64_t product(uint64_t crc, uint32_t constant) {
    return (uint64_t)vmull_p64((poly64_t)crc, (poly64_t)constant);
}

TARGET static inline uint64_t reduce(uint64_t wide) {
    return __crc32cd(0, wide);
}

static int processor_can(void) {
    unsigned long both = HWCAP_CRC32 | HWCAP_PMULL;
    return (getauxval(AT_HWCAP) & both) == both;
}
#endif

TARGET static uint32_t crc32c_instruction(uint32_t crc, const void *data, size_t size) {
    const uint8_t *pos = data;
    uint64_t a = (uint32_t)~crc;
    while (size >= 24 * STREAM_WORDS_MIN) {
        size_t words = size / 24 < STREAM_WORDS_MAX ? size / 24 : STREAM_WORDS_MAX;
        size_t stride = words * 8;
        uint64_t b = 0, c = 0;
        for (const uint8_t *end = pos + stride; pos != end; pos += 8) {
            a = step_word(a, pos);
            b = step_word(b, pos + stride);
            c = step_word(c, pos + 2 * stride);
        }
        a = reduce(product(a, move_words[2 * words]) ^ product(b, move_words[words])) ^ c;
        pos += 2 * stride;
        size -= 3 * stride;
    }
    for (; size >= 8; pos += 8, size -= 8)
        a = step_word(a, pos);
    for (; size > 0; pos++, size--)
        a = step_byte(a, *pos);
    return ~(uint32_t)a;
}

crc_fn crc32c_hardware(void) {
    return processor_can() ? crc32c_instruction : NULL;
}

const char *crc32c_hardware_name(void) {
    return HARDWARE;
}

#else

crc_fn crc32c_hardware(void) {
    return NULL;
}

const char *crc32c_hardware_name(void) {
    return "none";
}

#endif

void crc_init(void) {
    static const uint8_t zeros[8];
    fill_slices(castagnoli_slices, CASTAGNOLI);
    fill_slices(ieee_slices, IEEE);
    move_words[1] = 1; /* x^31 */
    for (int words = 2; words <= 2 * STREAM_WORDS_MAX; words++)
        move_words[words] = advance(castagnoli_slices, move_words[words - 1], zeros, 8);
    if (crc32c_hardware() != NULL)
        crc32c_best = crc32c_hardware();
}
