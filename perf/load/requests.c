/* Builds requests: every frame once before the run, later only its ids and digest. Runs on the worker's thread. */
#include "load.h"

#include <stdlib.h>

static uint64_t next_random(struct connection *c)
{
    c->random ^= c->random << 13, c->random ^= c->random >> 7, c->random ^= c->random << 17;
    return c->random;
}

static void build_frame(struct connection *c, uint32_t at)
{
    static const int operation[] = {OP_ADD, OP_READ, OP_BATCH};
    const struct options *o = c->options;
    uint8_t *frame = c->ring + (size_t)at * c->frame_bytes;
    put_frame_head(frame, c->frame_bytes, operation[o->mode]);
    if (o->mode == MODE_BATCH) {
        put32(frame + 32, (uint32_t)o->batch);
        put64(frame + 36, (uint64_t)o->batch_bytes);
    }
    if (o->mode != MODE_ADD)
        return;
    uint8_t *data = frame + ADD_ENTRY_AT + ENTRY_HEAD_BYTES;
    memcpy(frame + 8, MASTER_KEY, sizeof MASTER_KEY);
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
    c->frame_bytes = o->mode == MODE_READ    ? READ_BYTES
                     : o->mode == MODE_BATCH ? BATCH_BYTES
                                             : (uint32_t)(ADD_ENTRY_AT + ENTRY_HEAD_BYTES + o->size);
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

/* The next add of this connection: its ledgers take turns. */
static void make_add(struct connection *c, uint8_t *frame, struct slot *slot)
{
    const struct options *o = c->options;
    struct stream *stream = &c->streams[c->stream_at];
    slot->ledger_index = c->stream_at;
    slot->ledger = stream->ledger;
    slot->entry = stream->next++;
    c->stream_at = c->stream_at + 1 == c->stream_count ? 0 : c->stream_at + 1;
    put_entry_head(frame + ADD_ENTRY_AT, slot->ledger, slot->entry, stream->acknowledged - 1,
                   (slot->entry + 1) * o->size, c->shift, c->data_crc[c->made % c->window]);
}

/* The next read position of this connection: to the end of a ledger, then the next ledger; at the end from the start. */
static void make_read(struct connection *c, uint8_t *frame, struct slot *slot)
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
    put64(frame + 8, (uint64_t)slot->ledger);
    put64(frame + 16, (uint64_t)slot->entry);
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
        make_read(c, frame, slot);
    if (c->options->mode == MODE_BATCH) {
        slot->request = (int64_t)(c->made << 20 | (uint64_t)index);
        put64(frame + 24, (uint64_t)slot->request);
        slot->next = -2; /* busy: batch answers name their slot */
    } else {
        int32_t *bucket = &c->buckets[slot_bucket(c, slot->ledger, slot->entry)];
        slot->next = *bucket;
        *bucket = index;
    }
    c->made++;
    c->made_bytes += c->frame_bytes;
    c->outstanding++;
}
