/* Parses responses. Runs on the worker's thread.
 *
 * Only the fixed part of a response is parsed (code, ids, size); the entries are received and skipped, so that the
 * generator costs little compared with the server. Every `verify`th response is kept and its digests are verified.
 */
#include "load.h"

#include <errno.h>
#include <sys/socket.h>


static int32_t slot_of_key(struct connection *c, int64_t ledger, int64_t entry)
{
    int32_t *link = &c->buckets[slot_bucket(c, ledger, entry)];
    while (*link >= 0) {
        int32_t index = *link;
        struct slot *slot = &c->slots[index];
        if (slot->ledger == ledger && slot->entry == entry) {
            *link = slot->next;
            return index;
        }
        link = &slot->next;
    }
    return -1;
}

static int32_t slot_of_request(struct connection *c, int64_t request)
{
    uint64_t index = (uint64_t)request & 0xfffff;
    if (index >= c->window || c->slots[index].next != -2 || c->slots[index].request != request)
        return -1;
    return (int32_t)index;
}

/* Returns how many entries a response of this size has; 0 and *bad if no number of entries has this size. */
static uint32_t entries_in(const struct connection *c, const struct answer *a, uint32_t frame_bytes, bool *bad)
{
    const struct options *o = c->options;
    uint32_t entry_bytes = (uint32_t)(ENTRY_HEAD_BYTES + o->size), tail_most = o->protocol == 3 ? V3_TAIL_MOST : 0;
    uint32_t after_head = frame_bytes - a->entries_at, each = entry_bytes;
    if (o->mode == MODE_ADD) {
        *bad = after_head != 0;
        return 1;
    }
    if (o->mode == MODE_BATCH)
        each += a->prefix_bytes;
    uint32_t entries = o->mode == MODE_READ ? 1 : after_head / each;
    *bad = a->entry_bytes != entry_bytes || after_head < entries * each || after_head - entries * each > tail_most ||
           entries == 0 || (o->mode == MODE_BATCH && entries > (uint32_t)o->batch);
    return entries;
}

/* Returns the position after the length field of an entry in a batch; NULL if the length is not the expected one. */
static const uint8_t *skip_prefix(const struct connection *c, const uint8_t *at, const uint8_t *end, uint64_t wanted)
{
    uint64_t bytes = 0;
    if (c->options->protocol == 3)
        at = end - at > 1 && *at == 0x22 ? get_varint(at + 1, end, &bytes) : NULL;
    else if (end - at >= 4)
        bytes = get32(at), at += 4;
    return bytes == wanted ? at : NULL;
}

/* Verifies every entry of the response: length, ids and digest. */
static bool entries_are_true(const struct connection *c, const struct slot *slot)
{
    const uint8_t *at = c->frame + c->entries_at, *end = c->frame + c->frame_have;
    uint32_t bytes = (uint32_t)(ENTRY_HEAD_BYTES + c->options->size);
    for (uint32_t k = 0; k < c->answer_entries; k++, at += bytes) {
        if (c->options->mode == MODE_BATCH)
            at = skip_prefix(c, at, end, bytes);
        if (!at || end - at < bytes || get64(at) != slot->ledger || get64(at + 8) != slot->entry + k)
            return false;
        uint32_t state = crc_register(CRC_START, at, ENTRY_DIGEST_AT);
        state = crc_register(state, at + ENTRY_HEAD_BYTES, bytes - ENTRY_HEAD_BYTES);
        if (get32(at + ENTRY_DIGEST_AT) != ~state)
            return false;
    }
    return true;
}

static struct answer v2_answer(const struct options *o, const uint8_t *frame, uint32_t frame_bytes)
{
    static const int operation[] = {OP_ADD, OP_READ, OP_BATCH};
    bool batch = o->mode == MODE_BATCH;
    struct answer a = {.code = get32(frame + 8), .ledger = get64(frame + 12), .entry = get64(frame + 20)};
    a.foreign = get32(frame + 4) != ((uint32_t)WIRE_VERSION << 24 | (uint32_t)operation[o->mode] << 16);
    a.request = batch ? get64(frame + 28) : -1;
    a.entries_at = batch ? BATCH_ANSWER_BYTES : READ_ANSWER_BYTES;
    a.prefix_bytes = 4;
    a.entry_bytes = batch ? (uint32_t)(ENTRY_HEAD_BYTES + o->size) : frame_bytes - READ_ANSWER_BYTES;
    return a;
}

/* Finds the request once the fixed part of the response has arrived. False: no such request is outstanding. */
static bool answer_begin(struct connection *c, const uint8_t *frame, size_t head, struct tally *tally)
{
    const struct options *o = c->options;
    uint32_t frame_bytes = get32(frame) + 4;
    struct answer a = o->protocol == 3 ? v3_answer(o, frame, head) : v2_answer(o, frame, frame_bytes);
    bool by_request = o->mode == MODE_BATCH || o->protocol == 3, bad = a.foreign;
    c->current = by_request ? slot_of_request(c, a.request) : slot_of_key(c, a.ledger, a.entry);
    if (c->current < 0)
        return false;
    struct slot *slot = &c->slots[c->current];
    c->answer_entries = 0;
    c->entries_at = a.entries_at;
    tally->codes[a.code < CODES ? a.code : CODES - 1]++;
    if (a.code == 0 && !bad) {
        c->answer_entries = entries_in(c, &a, frame_bytes, &bad);
        bad = bad || slot->ledger != a.ledger || slot->entry != a.entry;
        if (o->mode == MODE_ADD)
            c->streams[slot->ledger_index].acknowledged++;
    }
    c->verifying = a.code == 0 && o->mode != MODE_ADD && o->verify > 0 && c->answered % (uint64_t)o->verify == 0 && !bad;
    c->frame_have = 0;
    tally->bad += bad;
    return true;
}

/* Completes a response whose last byte has arrived. */
static void answer_end(struct connection *c, struct tally *tally, const struct run *run, uint64_t now)
{
    struct slot *slot = &c->slots[c->current];
    if (c->verifying) {
        tally->verified += c->answer_entries;
        tally->bad += !entries_are_true(c, slot);
    }
    if (now >= run->start && now < run->end) {
        tally->operations++;
        tally->entries += c->answer_entries;
        tally->bytes += (uint64_t)c->answer_entries * (uint64_t)(ENTRY_HEAD_BYTES + c->options->size);
        tally->last_ns = now;
        histogram_add(&tally->latency, now > slot->since ? now - slot->since : 0);
    }
    slot->next = c->free_slot;
    c->free_slot = c->current;
    c->current = -1;
    c->outstanding--;
    c->answered++;
}

static void keep(struct connection *c, const uint8_t *data, size_t size)
{
    if (!c->verifying)
        return;
    memcpy(c->frame + c->frame_have, data, size);
    c->frame_have += size;
}

/* Returns how much of the response at `at` is needed to find its request; 0: its length has not arrived. */
static size_t head_of(const struct options *o, const uint8_t *at, size_t have)
{
    size_t fixed = o->mode == MODE_BATCH ? BATCH_ANSWER_BYTES : READ_ANSWER_BYTES;
    if (have < 4)
        return 0;
    uint32_t frame_bytes = get32(at) + 4;
    if (frame_bytes < 4 || frame_bytes > FRAME_BYTES_MAX || (o->protocol == 2 && frame_bytes < fixed))
        die("an answer of %u bytes: not a V%d answer of this operation", frame_bytes, o->protocol);
    if (o->protocol == 2)
        return fixed;
    return frame_bytes < V3_HEAD_MOST ? frame_bytes : V3_HEAD_MOST;
}

static void parse(struct connection *c, const uint8_t *at, const uint8_t *end, struct tally *tally,
                  const struct run *run, uint64_t now)
{
    for (;;) {
        if (c->current >= 0) {
            size_t step = (size_t)(end - at) < c->skip ? (size_t)(end - at) : c->skip;
            keep(c, at, step);
            at += step;
            c->skip -= step;
            if (c->skip)
                break;
            answer_end(c, tally, run, now);
        }
        size_t head = head_of(c->options, at, (size_t)(end - at));
        if (head == 0 || (size_t)(end - at) < head)
            break;
        if (!answer_begin(c, at, head, tally))
            die("an answer of %u bytes to nothing that was asked", get32(at) + 4);
        keep(c, at, head);
        c->skip = get32(at) + 4 - head;
        at += head;
    }
    c->input_have = (size_t)(end - at);
    memmove(c->input, at, c->input_have);
}

bool answers_receive(struct connection *c, struct tally *tally, const struct run *run)
{
    ssize_t got = recv(c->fd, c->input + c->input_have, INPUT_BYTES - c->input_have, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (got <= 0)
        return false;
    parse(c, c->input, c->input + c->input_have + (size_t)got, tally, run, now_ns());
    return true;
}
