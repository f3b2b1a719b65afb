/* The bound of reads from cache: a single-threaded server that does nothing but the I/O.
 *
 *   read_bound LEDGER ENTRIES SIZE SPIN   SIZE: bytes of user data; SPIN: 1 never sleeps; prints its port
 *
 * The ledger is in memory as a bookie sends it: u32 length | entry, one after another. The response to a batch read is
 * one header and one slice of it, to a single read one header and one entry; all requests of one recv are answered with
 * one writev. The responses are byte for byte those of a bookie.
 */
#include "../load/wire.h"
#include "bound.h"

#include <sys/uio.h>

enum { INPUT = 64 * 1024, PIECES = 1024 };

struct ledger {
    int64_t id, entries;
    uint32_t entry_bytes, stride;
    uint8_t *bytes;
};

struct client {
    int fd, pieces, sent; /* pieces[sent..pieces) are not sent yet */
    size_t have;
    uint8_t input[INPUT], heads[PIECES][BATCH_ANSWER_BYTES];
    struct iovec piece[PIECES];
};

static struct ledger build_ledger(int64_t id, int64_t entries, int size)
{
    struct ledger l = {id, entries, (uint32_t)(ENTRY_HEAD_BYTES + size), (uint32_t)(ENTRY_HEAD_BYTES + size + 4), NULL};
    static struct crc_shift shift;
    crc_shift_init(&shift, (size_t)size);
    l.bytes = malloc((size_t)entries * l.stride);
    uint8_t *data = malloc((size_t)size + 1);
    REQUIRE(l.bytes && data, "memory");
    fill_random(data, (size_t)size, 1);
    uint32_t crc = crc_register(0, data, (size_t)size);
    for (int64_t i = 0; i < entries; i++) {
        uint8_t *at = l.bytes + (size_t)i * l.stride;
        put32(at, l.entry_bytes);
        put_entry_head(at + 4, id, i, i - 1, (i + 1) * size, &shift, crc);
        memcpy(at + 4 + ENTRY_HEAD_BYTES, data, (size_t)size);
    }
    free(data);
    return l;
}

static void add_piece(struct client *c, void *at, size_t bytes)
{
    c->piece[c->pieces++] = (struct iovec){at, bytes};
}

/* Answers one complete request; there is room for two pieces. */
static void answer(struct client *c, const struct ledger *l, const uint8_t *request)
{
    bool batch = request[5] == OP_BATCH;
    uint32_t head_bytes = batch ? BATCH_ANSWER_BYTES : READ_ANSWER_BYTES;
    int64_t ledger = get64(request + 8), entry = get64(request + 16), count = 1;
    uint8_t *head = c->heads[c->pieces];
    uint32_t code = ledger != l->id ? 1 : entry < 0 || entry >= l->entries ? 2 : 0;
    if (code == 0 && batch) {
        int64_t fit = (get64(request + 36) - BATCH_ANSWER_BYTES) / l->stride;
        count = (int32_t)get32(request + 32);
        count = count > fit ? fit : count;
        count = count > l->entries - entry ? l->entries - entry : count;
        count = count < 1 ? 1 : count;
    }
    size_t body = code ? 0 : batch ? (size_t)count * l->stride : l->entry_bytes;
    put_frame_head(head, (uint32_t)(head_bytes + body), request[5]);
    put32(head + 8, code);
    memcpy(head + 12, request + 8, 16);
    if (batch)
        memcpy(head + 28, request + 24, 8);
    add_piece(c, head, head_bytes);
    if (!code)
        add_piece(c, l->bytes + (size_t)entry * l->stride + (batch ? 0 : 4), body);
}

/* Returns true if everything is sent. */
static bool flush(struct client *c)
{
    while (c->sent < c->pieces) {
        struct msghdr message = {.msg_iov = c->piece + c->sent, .msg_iovlen = (size_t)(c->pieces - c->sent)};
        ssize_t sent = sendmsg(c->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0)
            return errno != EAGAIN; /* the next recv notices a broken connection */
        while (c->sent < c->pieces && (size_t)sent >= c->piece[c->sent].iov_len)
            sent -= (ssize_t)c->piece[c->sent++].iov_len;
        if (c->sent < c->pieces) {
            c->piece[c->sent].iov_base = (uint8_t *)c->piece[c->sent].iov_base + sent;
            c->piece[c->sent].iov_len -= (size_t)sent;
        }
    }
    c->sent = c->pieces = 0;
    return true;
}

/* Answers the requests in the input. False: the socket is full, and some responses are waiting. */
static bool answer_all(struct client *c, const struct ledger *l)
{
    size_t at = 0;
    bool open = true;
    while (open && c->have - at >= 4 && c->have - at >= get32(c->input + at) + 4) {
        answer(c, l, c->input + at);
        at += get32(c->input + at) + 4;
        if (c->pieces > PIECES - 2)
            open = flush(c);
    }
    c->have -= at;
    memmove(c->input, c->input + at, c->have);
    return open && flush(c);
}

static void serve(int epoll, struct client *c, const struct ledger *l, uint32_t events)
{
    if (events & EPOLLOUT) {
        if (!flush(c) || !answer_all(c, l))
            return;
        watch(epoll, EPOLL_CTL_MOD, c->fd, EPOLLIN, c);
        return;
    }
    ssize_t got = recv(c->fd, c->input + c->have, INPUT - c->have, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        close(c->fd);
        free(c);
        return;
    }
    c->have += (size_t)got;
    if (!answer_all(c, l))
        watch(epoll, EPOLL_CTL_MOD, c->fd, EPOLLOUT, c);
}

int main(int argc, char **argv)
{
    const char *usage = "LEDGER ENTRIES SIZE SPIN";
    struct ledger ledger = build_ledger(argument(argc, argv, 1, usage), argument(argc, argv, 2, usage),
                                        (int)argument(argc, argv, 3, usage));
    int timeout = argument(argc, argv, 4, usage) ? 0 : -1;
    int epoll = epoll_create1(EPOLL_CLOEXEC), listener = listen_and_tell();
    watch(epoll, EPOLL_CTL_ADD, listener, EPOLLIN, NULL);
    for (;;) {
        struct epoll_event events[64];
        int ready = epoll_wait(epoll, events, 64, timeout);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.ptr) {
                serve(epoll, events[i].data.ptr, &ledger, events[i].events);
                continue;
            }
            struct client *c = calloc(1, sizeof *c);
            REQUIRE(c, "memory");
            c->fd = accept_connection(listener);
            watch(epoll, EPOLL_CTL_ADD, c->fd, EPOLLIN, c);
        }
    }
}
