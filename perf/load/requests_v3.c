/* Builds V3 requests: their constant parts, and the places of their numbers. Runs on the worker's thread. */
#include "load.h"

/* Writes bytes if there is a buffer; else only counts them. */
struct pen {
    uint8_t *frame;
    uint32_t at;
};

static void put(struct pen *p, const void *data, uint32_t size)
{
    if (p->frame)
        memcpy(p->frame + p->at, data, size);
    p->at += size;
}

static void number(struct pen *p, uint64_t value, int width)
{
    uint8_t bytes[10];
    put(p, bytes, (uint32_t)(put_varint(bytes, value, width) - bytes));
}

/* Writes a tag and room for a number that is patched later; returns the place of the number. */
static uint32_t place(struct pen *p, uint32_t field, int width)
{
    number(p, field << 3, 1);
    number(p, 0, width);
    return p->at - (uint32_t)width;
}

static void known(struct pen *p, uint32_t field, uint64_t value)
{
    number(p, field << 3, 1);
    number(p, value, varint_width(value));
}

static void bytes_head(struct pen *p, uint32_t field, uint32_t size)
{
    number(p, field << 3 | 2, varint_width(field << 3 | 2));
    number(p, size, varint_width(size));
}

/* Writes the message of the operation. */
static void message(const struct options *o, struct pen *p, struct layout *l)
{
    uint32_t entry_bytes = (uint32_t)(ENTRY_HEAD_BYTES + o->size);
    l->ledger = place(p, 1, l->ledger_width);
    l->entry = place(p, 2, V3_ENTRY_WIDTH);
    if (o->mode == MODE_BATCH) {
        known(p, 3, (uint64_t)o->batch);
        known(p, 4, (uint64_t)o->batch_bytes);
    } else if (o->mode == MODE_ADD) {
        bytes_head(p, 3, sizeof MASTER_KEY);
        put(p, MASTER_KEY, sizeof MASTER_KEY);
        bytes_head(p, 4, entry_bytes);
        l->body = p->at;
        p->at += entry_bytes;
    }
}

struct layout v3_frame(const struct options *o, uint8_t *frame)
{
    static const uint32_t operation[] = {V3_ADD, V3_READ, V3_BATCH}, field[] = {101, 100, 109};
    struct layout l = {.ledger_width = varint_width((uint64_t)(o->first_ledger + o->ledgers))};
    struct pen counting = {NULL, 0}, p = {frame, 4};
    message(o, &counting, &l);
    bytes_head(&p, 1, 4 + 1 + V3_TRANSACTION_WIDTH);
    known(&p, 1, V3_VERSION);
    known(&p, 2, operation[o->mode]);
    l.transaction = place(&p, 3, V3_TRANSACTION_WIDTH);
    bytes_head(&p, field[o->mode], counting.at);
    message(o, &p, &l);
    l.bytes = p.at;
    if (frame)
        put32(frame, l.bytes - 4);
    return l;
}

void v3_patch(const struct layout *l, uint8_t *frame, const struct slot *slot)
{
    put_varint(frame + l->transaction, (uint64_t)slot->request, V3_TRANSACTION_WIDTH);
    put_varint(frame + l->ledger, (uint64_t)slot->ledger, l->ledger_width);
    put_varint(frame + l->entry, (uint64_t)slot->entry, V3_ENTRY_WIDTH);
}
