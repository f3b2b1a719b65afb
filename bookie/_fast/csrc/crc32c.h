/* CRC32C (Castagnoli) and CRC32 (IEEE). Call crc_init once first; then any thread may call them. */
#ifndef BOOKIE_CRC32C_H
#define BOOKIE_CRC32C_H
#include <stddef.h>
#include <stdint.h>

typedef uint32_t (*crc_fn)(uint32_t crc, const void *data, size_t size);

/* Fill the tables and select the fastest implementation that this processor can run. */
void crc_init(void);

/* Checksums can be computed in parts: pass the checksum of the bytes before, or 0 at the start. */
extern crc_fn crc32c_best;
uint32_t crc32c_table(uint32_t crc, const void *data, size_t size);
uint32_t crc32_table(uint32_t crc, const void *data, size_t size);

/* The CRC32C that uses the processor's instructions, or NULL if the processor or the build lacks them, and its name. */
crc_fn crc32c_hardware(void);
const char *crc32c_hardware_name(void);
#endif
