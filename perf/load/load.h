/* The types that the load generator shares: its options, a connection, a worker thread. */
#ifndef PERF_LOAD_H
#define PERF_LOAD_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "histogram.h"
#include "wire.h"

#define INPUT_BYTES (256 * 1024)              /* one recv; small, so that it stays in the CPU's cache */
#define FRAME_BYTES_MAX (5 * 1024 * 1024 + 4) /* the longest response that is accepted */

enum mode { MODE_ADD, MODE_READ, MODE_BATCH };

struct options {
    enum mode mode;
    const char *mode_name, *host;
    int port, size, outstanding, connections, threads, ledgers, batch, verify, server_pid, cpu, protocol;
    int64_t first_ledger, first_entry, entries, count, batch_bytes;
    double seconds, warmup, rate;
    bool random, spin;
    uint64_t seed;
};

/* An outstanding request. Free slots are linked by `next`, busy ones by the bucket of their key. */
struct slot {
    int64_t ledger, entry, request;
    uint64_t since; /* ns: when it was sent or, at a fixed rate, when it was due */
    int32_t next, ledger_index;
};

/* Responses with one code. V2 codes are 0 to 107, V3 codes up to 507; all others share the last place. */
#define CODES 513

struct tally {
    struct histogram latency;
    uint64_t operations, entries, bytes, verified, bad, codes[CODES];
    uint64_t last_ns; /* when the last counted response arrived */
};

/* The part of a ledger that one connection writes or reads. */
struct stream {
    int64_t ledger, next, acknowledged;
};

/* The places in a frame of the ring that change from request to request. */
struct layout {
    uint32_t bytes, transaction, ledger, entry, body;
    int ledger_width;
};

/* The fixed part of a response, in either protocol. */
struct answer {
    uint32_t code, entries_at;          /* offset of the first entry; in a batch, of its length field */
    uint32_t prefix_bytes, entry_bytes; /* of that length field, and of the entry */
    int64_t ledger, entry, request;
    bool foreign; /* another version or operation, or a truncated message */
};

/* A connection, owned by its worker. The ring has `window` prebuilt frames, of which only ids and digests change. */
struct connection {
    const struct options *options;
    int fd;
    uint32_t window, outstanding, frame_bytes, bucket_mask;
    struct layout layout;
    bool writable_wanted;
    uint8_t *ring;
    uint32_t *data_crc; /* per frame of the ring: CRC register of its user data */
    uint64_t made, made_bytes, sent_bytes, limit, answered;
    struct crc_shift *shift;
    struct slot *slots;
    int32_t free_slot, *buckets, current; /* current: the slot whose response is arriving, or -1 */
    struct stream *streams;
    int stream_count, stream_at;
    uint64_t due, period, random; /* at a fixed rate: ns of the next request, and ns between two */
    uint8_t *input, *frame;       /* receive buffer; the complete response that is being verified */
    size_t input_have, skip, frame_have;
    bool verifying;
    uint32_t answer_entries, entries_at;
};

struct worker {
    pthread_t thread;
    const struct options *options;
    struct connection *connections;
    int connection_count, epoll;
    struct tally tally;
    struct run *run;
};

/* The measured interval: responses that arrive within [start, end) count. */
struct run {
    uint64_t start, end;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int measuring; /* workers that have not yet finished their part */
};

static inline uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Responses to adds and single reads are matched by (ledger, entry) and arrive in any order. */
static inline uint32_t slot_bucket(const struct connection *c, int64_t ledger, int64_t entry)
{
    uint64_t key = (uint64_t)entry + (uint64_t)ledger * 0x9e3779b97f4a7c15u;
    return (uint32_t)(key ^ key >> 32) & c->bucket_mask;
}

void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* requests_v3.c: writes the constant parts of a V3 frame and returns its places; `frame` may be NULL. */
struct layout v3_frame(const struct options *o, uint8_t *frame);
void v3_patch(const struct layout *l, uint8_t *frame, const struct slot *slot);
/* answers_v3.c: parses the head of a response of which `size` bytes have arrived. */
struct answer v3_answer(const struct options *o, const uint8_t *frame, size_t size);
/* requests.c: builds frames. */
void requests_init(struct connection *c);
void request_make(struct connection *c, uint64_t now);
/* answers.c: receives frames. False: the server closed the connection. */
bool answers_receive(struct connection *c, struct tally *tally, const struct run *run);
/* worker.c */
void *worker_main(void *worker);
#endif
