/* CRC32C with the CPU's instruction, and the shift that joins checksums of neighbouring pieces.
 *
 * A "register" is the raw CRC state, before the final inversion. The register after a piece of n bytes is linear in the
 * register before it, so shift(register, n) ^ register-of-the-piece-from-zero gives the same state as reading the bytes.
 * The load generator uses it to digest an entry from its 32 header bytes; the group checksum reads three lanes at once.
 * Any thread; tables are constant after crc_shift_init.
 */
#ifndef PERF_CRC32C_H
#define PERF_CRC32C_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE4_2__)
#include <nmmintrin.h>
#define CRC_U64(c, v) ((uint32_t)_mm_crc32_u64((c), (v)))
#define CRC_U8(c, v) _mm_crc32_u8((c), (v))
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define CRC_U64(c, v) __crc32cd((c), (v))
#define CRC_U8(c, v) __crc32cb((c), (v))
#else
#error "a CPU with a CRC32C instruction is needed (x86-64 with SSE4.2, or ARMv8 with CRC)"
#endif

#define CRC_START 0xffffffffu
#define CRC_LANE 4096 /* bytes of each of the three lanes of crc_group */

static inline uint32_t crc_register(uint32_t state, const uint8_t *data, size_t size)
{
    for (; size >= 8; size -= 8, data += 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        state = CRC_U64(state, word);
    }
    for (; size > 0; size--, data++)
        state = CRC_U8(state, *data);
    return state;
}

/* The effect of n zero bytes on a register, as one table per byte of the register. */
struct crc_shift {
    uint32_t table[4][256];
};

static inline uint32_t crc_polynomial_times(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (int bit = 31; bit >= 0; bit--) { /* bit 31 is x^0: registers are bit-reversed */
        if (a >> bit & 1)
            product ^= b;
        b = (b >> 1) ^ (b & 1 ? 0x82f63b78u : 0);
    }
    return product;
}

static inline void crc_shift_init(struct crc_shift *shift, size_t bytes)
{
    uint32_t factor = 0x80000000u, square = 0x00800000u; /* x^0, x^8 */
    for (; bytes; bytes >>= 1, square = crc_polynomial_times(square, square))
        if (bytes & 1)
            factor = crc_polynomial_times(factor, square);
    for (int lane = 0; lane < 4; lane++)
        for (uint32_t value = 0; value < 256; value++)
            shift->table[lane][value] = crc_polynomial_times(factor, value << (8 * lane));
}

static inline uint32_t crc_shifted(const struct crc_shift *shift, uint32_t state)
{
    return shift->table[0][state & 255] ^ shift->table[1][state >> 8 & 255] ^ shift->table[2][state >> 16 & 255] ^
           shift->table[3][state >> 24];
}

/* crc_register of a long piece: three independent lanes hide the instruction's latency. `lane` shifts by CRC_LANE. */
static inline uint32_t crc_group(const struct crc_shift *lane, uint32_t state, const uint8_t *data, size_t size)
{
    for (; size >= 3 * CRC_LANE; size -= 3 * CRC_LANE, data += 3 * CRC_LANE) {
        uint32_t second = 0, third = 0;
        for (size_t at = 0; at < CRC_LANE; at += 8) {
            uint64_t words[3];
            memcpy(&words[0], data + at, 8);
            memcpy(&words[1], data + CRC_LANE + at, 8);
            memcpy(&words[2], data + 2 * CRC_LANE + at, 8);
            state = CRC_U64(state, words[0]);
            second = CRC_U64(second, words[1]);
            third = CRC_U64(third, words[2]);
        }
        state = crc_shifted(lane, state) ^ second;
        state = crc_shifted(lane, state) ^ third;
    }
    return crc_register(state, data, size);
}
#endif
