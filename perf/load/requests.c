/* Builds requests: each frame once before the run, later only its ids and digest. Runs on the worker's thread. */
#include "load.h"

#include <stdlib.h>

static uint64_t next_random(struct connection *c)
{
    c->random ^= c->random << 13, c->random ^= c->random >> 7, c->random ^= c->random << 17;
    return c->random;
}

static struct layout v2_layout(const struct options *o)
{
    struct layout l = {.ledger = 8, .entry = 16, .transaction = 24, .body = ADD_ENTRY_AT};
    l.bytes = o->mode == MODE_READ    ? READ_BYTES
              : o->mode == MODE_BATCH ? BATCH_BYTES
                                      : (uint32_t)(ADD_ENTRY_AT + ENTRY_HEAD_BYTES + o->size);
    return l;
}

static void v2_frame(const struct options *o, uint32_t bytes, uint8_t *frame)
{
    static const int operation[] = {OP_ADD, OP_READ, OP_BATCH};
    put_frame_head(frame, bytes, operation[o->mode]);
    if (o->mode == MODE_BATCH) {
        put32(frame + 32, (uint32_t)o->batch);
        put64(frame + 36, (uint64_t)o->batch_bytes);
    } else if (o->mode == MODE_ADD) {
        memcpy(frame + 8, MASTER_KEY, sizeof MASTER_KEY);
    }
}

static void build_frame(struct connection *c, uint32_t at)
{
    const struct options *o = c->options;
    uint8_t *frame = c->ring + (size_t)at * c->frame_bytes;
    if (o->protocol == 3)
        v3_frame(o, frame);
    else
        v2_frame(o, c->frame_bytes, frame);
    if (o->mode != MODE_ADD)
        return;
    uint8_t *data = frame + c->layout.body + ENTRY_HEAD_BYTES;
    fill_random(data, (size_t)o->size, o->seed + at);
    c->data_crc[at] = crc_register(0, data, (size_t)o->size);
}

void requests_init(struct connection *c)
{
    const struct options *o = c->options;
    uint32_t buckets = 4;
    while (buckets < 2 * c->window)
        buckets *= 2;
    c->bucket_mask = buckets - 1;
    c->layout = o->protocol == 3 ? v3_frame(o, NULL) : v2_layout(o);
    c->frame_bytes = c->layout.bytes;
    c->ring = malloc((size_t)c->window * c->frame_bytes);
    c->data_crc = calloc(c->window, sizeof *c->data_crc);
    c->shift = malloc(sizeof *c->shift);
    c->slots = calloc(c->window, sizeof *c->slots);
    c->buckets = malloc(buckets * sizeof *c->buckets);
    if (!c->ring || !c->data_crc || !c->shift || !c->slots || !c->buckets)
        die("out of memory for %u outstanding requests of %u bytes", c->window, c->frame_bytes);
    crc_shift_init(c->shift, (size_t)o->size);
    for (uint32_t i = 0; i < buckets; i++)
        c->buckets[i] = -1;
    for (uint32_t i = 0; i < c->window; i++) {
        c->slots[i].next = i + 1 < c->window ? (int32_t)i + 1 : -1;
        build_frame(c, i);
    }
}

/* Chooses the next add of this connection, from its ledgers in turn. */
static void make_add(struct connection *c, uint8_t *frame, struct slot *slot)
{
    const struct options *o = c->options;
    struct stream *stream = &c->streams[c->stream_at];
    slot->ledger_index = c->stream_at;
    slot->ledger = stream->ledger;
    slot->entry = stream->next++;
    c->stream_at = c->stream_at + 1 == c->stream_count ? 0 : c->stream_at + 1;
    put_entry_head(frame + c->layout.body, slot->ledger, slot->entry, stream->acknowledged - 1,
                   (slot->entry + 1) * o->size, c->shift, c->data_crc[c->made % c->window]);
}

/* Advances the read position of this connection: through each ledger in turn, and then from the start again. */
static void make_read(struct connection *c, struct slot *slot)
{
    const struct options *o = c->options;
    int64_t step = o->mode == MODE_BATCH ? o->batch : 1, end = o->first_entry + o->entries;
    struct stream *stream = &c->streams[c->stream_at];
    if (o->random) {
        stream = &c->streams[next_random(c) % (uint64_t)c->stream_count];
        stream->next = o->first_entry + (int64_t)(next_random(c) % (uint64_t)(o->entries - step + 1));
    }
    slot->ledger = stream->ledger;
    slot->entry = stream->next;
    stream->next += step;
    if (stream->next + step > end) {
        stream->next = o->first_entry;
        c->stream_at = (c->stream_at + 1) % c->stream_count;
    }
}

static void v2_patch(const struct layout *l, uint8_t *frame, const struct slot *slot, enum mode mode)
{
    if (mode == MODE_ADD)
        return; /* the entry has its own ids */
    put64(frame + l->ledger, (uint64_t)slot->ledger);
    put64(frame + l->entry, (uint64_t)slot->entry);
    if (mode == MODE_BATCH)
        put64(frame + l->transaction, (uint64_t)slot->request);
}

/* Takes a free slot and a free frame of the ring; the caller has checked that the window is open. */
void request_make(struct connection *c, uint64_t now)
{
    uint8_t *frame = c->ring + (size_t)(c->made % c->window) * c->frame_bytes;
    int32_t index = c->free_slot;
    struct slot *slot = &c->slots[index];
    c->free_slot = slot->next;
    slot->since = c->period ? c->due : now;
    c->due += c->period;
    if (c->options->mode == MODE_ADD)
        make_add(c, frame, slot);
    else
        make_read(c, slot);
    if (c->options->mode == MODE_BATCH || c->options->protocol == 3) {
        slot->request = (int64_t)((c->made << 20 | (uint64_t)index) & (((uint64_t)1 << 7 * V3_TRANSACTION_WIDTH) - 1));
        slot->next = -2; /* busy: the response has the number of its slot */
    } else {
        int32_t *bucket = &c->buckets[slot_bucket(c, slot->ledger, slot->entry)];
        slot->next = *bucket;
        *bucket = index;
    }
    if (c->options->protocol == 3)
        v3_patch(&c->layout, frame, slot);
    else
        v2_patch(&c->layout, frame, slot, c->options->mode);
    c->made++;
    c->made_bytes += c->frame_bytes;
    c->outstanding++;
}
