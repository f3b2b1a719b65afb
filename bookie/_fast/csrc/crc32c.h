/* CRC32C (Castagnoli) and CRC32 (IEEE). Call crc_init once before anything else; afterwards any thread. */
#ifndef BOOKIE_CRC32C_H
#define BOOKIE_CRC32C_H
#include <stddef.h>
#include <stdint.h>

typedef uint32_t (*crc_fn)(uint32_t crc, const void *data, size_t size);

/* Fills the tables and picks the fastest implementation that this processor can run. */
void crc_init(void);

/* Incremental: pass the previous value, start with 0. */
extern crc_fn crc32c_best;
uint32_t crc32c_table(uint32_t crc, const void *data, size_t size);
uint32_t crc32_table(uint32_t crc, const void *data, size_t size);

/* The instruction-based CRC32C, or NULL where the processor or the build has none; and its name. */
crc_fn crc32c_hardware(void);
const char *crc32c_hardware_name(void);
#endif
