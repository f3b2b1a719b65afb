/* Parses the head of a V3 response, with the order of fields that every bookie uses. Runs on the worker's thread. */
#include "load.h"

/* Reads the number after the expected one-byte tag; NULL if there is another tag. */
static const uint8_t *number(const uint8_t *at, const uint8_t *end, uint32_t tag, uint64_t *value)
{
    if (!at || at == end || *at != tag)
        return NULL;
    return get_varint(at + 1, end, value);
}

static const uint8_t *header(const uint8_t *at, const uint8_t *end, uint64_t operation, uint64_t *transaction)
{
    uint64_t size, version = 0, answered = 0;
    at = number(at, end, 0x0a, &size);
    at = number(at, end, 0x08, &version);
    at = number(at, end, 0x10, &answered);
    at = number(at, end, 0x18, transaction);
    return version == V3_VERSION && answered == operation ? at : NULL;
}

struct answer v3_answer(const struct options *o, const uint8_t *frame, size_t size)
{
    static const uint64_t operation[] = {V3_ADD, V3_READ, V3_BATCH}, field[] = {101, 100, 109};
    const uint8_t *at = frame + 4, *end = frame + size;
    struct answer a = {.foreign = true, .request = -1};
    uint64_t transaction = 0, code = 0, tag = 0, inner, ledger = 0, entry = 0, entry_bytes = 0;
    at = header(at, end, operation[o->mode], &transaction);
    at = number(at, end, 0x10, &code);
    if (!at)
        return a;
    a.request = (int64_t)transaction;
    a.code = (uint32_t)(code < CODES ? code : CODES - 1);
    a.foreign = false;
    if (code)
        return a;
    at = get_varint(at, end, &tag);
    at = at ? get_varint(at, end, &inner) : NULL;
    at = number(at, end, 0x08, &code);
    at = number(at, end, 0x10, &ledger);
    at = number(at, end, 0x18, &entry);
    a.ledger = (int64_t)ledger;
    a.entry = (int64_t)entry;
    a.entries_at = at ? (uint32_t)(at - frame) : 0;
    if (o->mode != MODE_ADD) {
        at = number(at, end, 0x22, &entry_bytes);
        a.entry_bytes = (uint32_t)entry_bytes;
        a.prefix_bytes = at ? (uint32_t)(at - frame) - a.entries_at : 0;
        if (o->mode == MODE_READ)
            a.entries_at += a.prefix_bytes;
    }
    a.foreign = !at || tag != (field[o->mode] << 3 | 2) || code != 0;
    return a;
}
