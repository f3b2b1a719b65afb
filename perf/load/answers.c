/* Takes answers apart. Runs on the worker's thread.
 *
 * Only the fixed part of an answer is looked at (code, ids, size); the entries are received and skipped, so that the
 * generator costs little beside the server. Each `verify`th answer is kept whole and its digests are checked.
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

/* How many entries an answer of this size holds; 0 and *bad if the size fits no such number. */
static uint32_t entries_in(const struct connection *c, uint32_t frame_bytes, bool *bad)
{
    uint32_t entry_bytes = (uint32_t)(ENTRY_HEAD_BYTES + c->options->size);
    if (c->options->mode == MODE_ADD) {
        *bad = frame_bytes != ADD_ANSWER_BYTES;
        return 1;
    }
    if (c->options->mode == MODE_READ) {
        *bad = frame_bytes != READ_ANSWER_BYTES + entry_bytes;
        return 1;
    }
    uint32_t body = frame_bytes - BATCH_ANSWER_BYTES, entries = body / (entry_bytes + 4);
    *bad = entries * (entry_bytes + 4) != body || entries == 0 || entries > (uint32_t)c->options->batch;
    return entries;
}

/* Every entry of the answer: length, ids and digest. */
static bool entries_are_true(const struct connection *c, const struct slot *slot)
{
    const uint8_t *at = c->frame, *end = c->frame + c->frame_have;
    uint32_t bytes = (uint32_t)(ENTRY_HEAD_BYTES + c->options->size);
    bool batch = c->options->mode == MODE_BATCH;
    at += batch ? BATCH_ANSWER_BYTES : READ_ANSWER_BYTES;
    for (int64_t id = slot->entry; at < end; id++, at += bytes) {
        if (batch && (end - at < 4 || get32(at) != bytes))
            return false;
        at += batch ? 4 : 0;
        if (end - at < bytes || get64(at) != slot->ledger || get64(at + 8) != id)
            return false;
        uint32_t state = crc_register(CRC_START, at, ENTRY_DIGEST_AT);
        state = crc_register(state, at + ENTRY_HEAD_BYTES, bytes - ENTRY_HEAD_BYTES);
        if (get32(at + ENTRY_DIGEST_AT) != ~state)
            return false;
    }
    return true;
}

/* The fixed part has come in: find the request. False: no such request is outstanding. */
static bool answer_begin(struct connection *c, const uint8_t *head, struct tally *tally)
{
    static const int operation[] = {OP_ADD, OP_READ, OP_BATCH};
    enum mode mode = c->options->mode;
    uint32_t code = get32(head + 8), frame_bytes = get32(head) + 4;
    bool bad = get32(head + 4) != ((uint32_t)WIRE_VERSION << 24 | (uint32_t)operation[mode] << 16);
    int64_t ledger = get64(head + 12), entry = get64(head + 20);
    c->current = mode == MODE_BATCH ? slot_of_request(c, get64(head + 28)) : slot_of_key(c, ledger, entry);
    if (c->current < 0)
        return false;
    struct slot *slot = &c->slots[c->current];
    c->answer_entries = 0;
    tally->codes[code < CODES ? code : CODES - 1]++;
    if (code == 0) {
        bool wrong_size;
        c->answer_entries = entries_in(c, frame_bytes, &wrong_size);
        bad = bad || wrong_size || slot->ledger != ledger || slot->entry != entry;
        if (mode == MODE_ADD)
            c->streams[slot->ledger_index].acknowledged++;
    }
    int verify = c->options->verify;
    c->verifying = code == 0 && mode != MODE_ADD && verify > 0 && c->answered % (uint64_t)verify == 0 && !bad;
    c->frame_have = 0;
    tally->bad += bad;
    return true;
}

/* The last byte has come in. */
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

static void parse(struct connection *c, const uint8_t *at, const uint8_t *end, struct tally *tally,
                  const struct run *run, uint64_t now)
{
    size_t head = c->options->mode == MODE_BATCH ? BATCH_ANSWER_BYTES : READ_ANSWER_BYTES;
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
        if ((size_t)(end - at) < head)
            break;
        uint32_t frame_bytes = get32(at) + 4;
        if (frame_bytes < head || frame_bytes > FRAME_BYTES_MAX)
            die("an answer of %u bytes: not a V2 answer of this operation", frame_bytes);
        if (!answer_begin(c, at, tally))
            die("an answer to nothing that was asked: ledger %lld, entry %lld", (long long)get64(at + 12),
                (long long)get64(at + 20));
        keep(c, at, head);
        c->skip = frame_bytes - head;
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
