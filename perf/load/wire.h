/* The V2 wire layouts that the load generator and the bound servers share; everything big-endian.
 *
 * frame    u32 length of the rest | u32 packet header (version, operation, flags) | ...
 * add      frame head | 20 master key | entry                      answer  frame head | i32 code | i64 ledger | i64 entry
 * read     frame head | i64 ledger | i64 entry                     answer  the same, then the entry
 * batch    frame head | i64 ledger | i64 entry | i64 request | i32 count | i64 bytes
 *          answer  frame head | i32 code | i64 ledger | i64 entry | i64 request | (u32 length, entry)...
 *
 * V3, which only the load generator speaks: u32 length | a protobuf message. Numbers that change from request to request
 * are padded to a fixed width, so that a frame can be built once and patched.
 *
 * request  0a n header | field 100, 101 or 109 {1: ledger, 2: entry, ...}
 * answer   0a n header | 10 status | field 100, 101 or 109 {1: status, 2: ledger, 3: entry, 4: entry bytes..., ...}
 * header   08 version 10 operation 18 transaction
 *
 * entry    i64 ledger | i64 entry | i64 last add confirmed | i64 ledger bytes so far | u32 crc32c | user data
 */
#ifndef PERF_WIRE_H
#define PERF_WIRE_H
#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "crc32c.h"

enum {
    OP_ADD = 1,
    OP_READ = 2,
    OP_BATCH = 7,
    WIRE_VERSION = 2,
    ADD_ENTRY_AT = 28,
    ADD_ANSWER_BYTES = 28,
    READ_BYTES = 24,
    READ_ANSWER_BYTES = 28,  /* before the entry */
    BATCH_BYTES = 44,
    BATCH_ANSWER_BYTES = 36, /* before the entries */
    V3_VERSION = 3,
    V3_READ = 1,
    V3_ADD = 2,
    V3_BATCH = 12,
    V3_TRANSACTION_WIDTH = 7, /* bytes of varints, padded */
    V3_ENTRY_WIDTH = 5,
    V3_HEAD_MOST = 72, /* of a response: everything before its first entry, including the length of that */
    V3_TAIL_MOST = 24, /* after the last entry: maxLAC and its timestamp */
    V3_COUNTED_HEAD = 64, /* what counts towards the size limit of a batch besides its entries */
    V3_COUNTED_EACH = 6,
    ENTRY_DIGEST_AT = 32,
    ENTRY_HEAD_BYTES = 36,
};

/* SHA-1 of "ledger": the key of a ledger with an empty password. */
static const uint8_t MASTER_KEY[20] = {0x85, 0x0b, 0xf1, 0x07, 0x1c, 0x5e, 0x3d, 0x8c, 0x24, 0x23,
                                       0x56, 0x76, 0xf8, 0x81, 0x6a, 0xe0, 0xcb, 0xe2, 0xf1, 0x4f};

static inline void put32(uint8_t *at, uint32_t value)
{
    value = htobe32(value);
    memcpy(at, &value, 4);
}

static inline void put64(uint8_t *at, uint64_t value)
{
    value = htobe64(value);
    memcpy(at, &value, 8);
}

static inline uint32_t get32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, 4);
    return be32toh(value);
}

static inline int64_t get64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, 8);
    return (int64_t)be64toh(value);
}

static inline int varint_width(uint64_t value)
{
    int width = 1;
    for (; value >= 0x80; value >>= 7)
        width++;
    return width;
}

/* Writes `value` in `width` bytes; returns the position after them. */
static inline uint8_t *put_varint(uint8_t *at, uint64_t value, int width)
{
    for (; width > 1; width--, value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)(value & 0x7f);
    return at;
}

/* Returns the position after a varint, or NULL if it does not end before `end`. */
static inline const uint8_t *get_varint(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; at < end && shift < 70; shift += 7, at++) {
        *value |= (uint64_t)(*at & 0x7f) << shift;
        if (*at < 0x80)
            return at + 1;
    }
    return NULL;
}

static inline void put_frame_head(uint8_t *frame, uint32_t frame_bytes, int operation)
{
    put32(frame, frame_bytes - 4);
    put32(frame + 4, (uint32_t)WIRE_VERSION << 24 | (uint32_t)operation << 16);
}

/* Fills the 36 bytes before the user data. `data` is the CRC register of the user data from zero, `shift` its size. */
static inline void put_entry_head(uint8_t *entry, int64_t ledger, int64_t id, int64_t confirmed, int64_t length,
                                  const struct crc_shift *shift, uint32_t data)
{
    put64(entry, (uint64_t)ledger);
    put64(entry + 8, (uint64_t)id);
    put64(entry + 16, (uint64_t)confirmed);
    put64(entry + 24, (uint64_t)length);
    uint32_t head = crc_register(CRC_START, entry, ENTRY_DIGEST_AT);
    put32(entry + ENTRY_DIGEST_AT, ~(crc_shifted(shift, head) ^ data));
}

/* Writes pseudo-random bytes, which cannot be compressed. */
static inline void fill_random(uint8_t *at, size_t size, uint64_t seed)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    for (size_t i = 0; i < size; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        at[i] = (uint8_t)(state >> 32);
    }
}
#endif
