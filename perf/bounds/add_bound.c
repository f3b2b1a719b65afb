/* The bound of synced adds: a server that journals, checksums and writes the entry log, and nothing else.
 *
 *   add_bound DIRECTORY [JOURNAL_MIB [LOG_MIB]]        prints its port
 *
 * Three threads and a ring of groups. The network thread copies entries into the open group. The journal thread takes
 * what has gathered, closes it with a CRC32C, writes it with O_DIRECT into a preallocated file of zeroes, syncs, and
 * sends the responses. The log thread appends the same bytes to the entry log, also with O_DIRECT, because the page cache
 * would cost twice the CPU. It has no index, lookups or ledger state, which a bookie has in addition.
 */
#include "../load/wire.h"
#include "bound.h"

#include <fcntl.h>
#include <pthread.h>

enum {
    INPUT = 256 * 1024,
    GROUPS = 4,
    GROUP_BYTES = 8 << 20,
    GROUP_ACKS = 65536,
    BLOCK = 4096
};

struct group {
    uint8_t *bytes;
    size_t size, acks;
    uint8_t (*ack)[ADD_ANSWER_BYTES];
    int *fd;     /* the socket of each acknowledgement */
    bool logged; /* free again */
};

struct client {
    int fd;
    size_t have;
    uint8_t input[INPUT];
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t filled, synced, freed;
    struct group group[GROUPS];
    uint64_t filling, journaled; /* group numbers; a group is at its number mod GROUPS */
    const char *directory;
    int journal;
    off_t journal_bytes, log_bytes;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .filled = PTHREAD_COND_INITIALIZER,
           .synced = PTHREAD_COND_INITIALIZER,
           .freed = PTHREAD_COND_INITIALIZER};

static struct crc_shift lane;

static void write_all(int fd, const uint8_t *at, size_t size, off_t offset)
{
    while (size) {
        ssize_t wrote = pwrite(fd, at, size, offset);
        REQUIRE(wrote > 0, "write");
        at += wrote, size -= (size_t)wrote, offset += wrote;
    }
}

static int open_in(const char *name, int flags)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", state.directory, name);
    int fd = open(path, flags | O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    REQUIRE(fd >= 0, path);
    return fd;
}

/* Creates a journal file of zeroes, so that a sync has no metadata to write. */
static void zero_journal(void)
{
    uint8_t *zeroes = calloc(1, 1 << 20);
    int fd = open_in("journal", O_TRUNC);
    REQUIRE(zeroes, "memory");
    for (off_t at = 0; at < state.journal_bytes; at += 1 << 20)
        write_all(fd, zeroes, 1 << 20, at);
    REQUIRE(fdatasync(fd) == 0, "fdatasync");
    close(fd);
    free(zeroes);
    state.journal = open_in("journal", O_DIRECT);
}

/* Returns the size of a closed group: full blocks, with room for the checksum. */
static size_t closed_bytes(const struct group *g)
{
    return (g->size + 4 + BLOCK - 1) / BLOCK * BLOCK;
}

/* Closes a group: pads it to full blocks, with a checksum of everything before in the last four bytes. */
static size_t close_group(struct group *g)
{
    size_t size = closed_bytes(g);
    memset(g->bytes + g->size, 0, size - g->size);
    put32(g->bytes + size - 4, ~crc_group(&lane, CRC_START, g->bytes, size - 4));
    return size;
}

static void send_acks(const struct group *g)
{
    for (size_t first = 0, next; first < g->acks; first = next) {
        for (next = first + 1; next < g->acks && g->fd[next] == g->fd[first]; next++)
            ;
        const uint8_t *at = g->ack[first];
        for (size_t left = (next - first) * ADD_ANSWER_BYTES; left;) {
            ssize_t sent = send(g->fd[first], at, left, MSG_NOSIGNAL);
            if (sent <= 0)
                break; /* the client has disconnected */
            at += sent, left -= (size_t)sent;
        }
    }
}

/* Waits until there is something to journal and a free group, to which the network thread switches. */
static struct group *take_filled(void)
{
    pthread_mutex_lock(&state.lock);
    struct group *g = &state.group[state.filling % GROUPS], *next = &state.group[(state.filling + 1) % GROUPS];
    while (!g->acks)
        pthread_cond_wait(&state.filled, &state.lock);
    while (!next->logged)
        pthread_cond_wait(&state.freed, &state.lock);
    next->logged = false;
    next->size = next->acks = 0;
    state.filling++;
    pthread_cond_broadcast(&state.freed);
    pthread_mutex_unlock(&state.lock);
    return g;
}

static void *journal_thread(void *unused)
{
    for (off_t at = 0;;) {
        struct group *g = take_filled();
        size_t size = close_group(g);
        if (at + (off_t)size > state.journal_bytes)
            at = 0;
        write_all(state.journal, g->bytes, size, at);
        REQUIRE(fdatasync(state.journal) == 0, "fdatasync");
        at += (off_t)size;
        send_acks(g);
        pthread_mutex_lock(&state.lock);
        state.journaled++;
        pthread_cond_signal(&state.synced);
        pthread_mutex_unlock(&state.lock);
    }
    return unused;
}

static int open_log(uint64_t file)
{
    int fd = open_in(file % 2 ? "1.log" : "0.log", O_TRUNC | O_DIRECT);
    REQUIRE((errno = posix_fallocate(fd, 0, state.log_bytes)) == 0, "fallocate");
    return fd;
}

/* Alternates between two log files; a full one is synced before the other is truncated. */
static void *log_thread(void *unused)
{
    int fd = open_log(0);
    off_t at = 0;
    for (uint64_t number = 0, file = 0;; number++) {
        struct group *g = &state.group[number % GROUPS];
        pthread_mutex_lock(&state.lock);
        while (state.journaled <= number)
            pthread_cond_wait(&state.synced, &state.lock);
        pthread_mutex_unlock(&state.lock);
        off_t size = (off_t)closed_bytes(g);
        if (at + size > state.log_bytes) {
            REQUIRE(fdatasync(fd) == 0, "fdatasync");
            close(fd);
            fd = open_log(++file);
            at = 0;
        }
        write_all(fd, g->bytes, (size_t)size, at);
        at += size;
        pthread_mutex_lock(&state.lock);
        g->logged = true;
        pthread_cond_broadcast(&state.freed);
        pthread_mutex_unlock(&state.lock);
    }
    return unused;
}

/* Copies one add into the group, or waits for the next group if it is full. The lock is held. */
static void take_add(int fd, const uint8_t *frame, uint32_t frame_bytes)
{
    uint32_t entry_bytes = frame_bytes - ADD_ENTRY_AT;
    struct group *g = &state.group[state.filling % GROUPS];
    while (g->size + entry_bytes + 4 + BLOCK > GROUP_BYTES || g->acks == GROUP_ACKS) {
        pthread_cond_signal(&state.filled);
        pthread_cond_wait(&state.freed, &state.lock);
        g = &state.group[state.filling % GROUPS];
    }
    put32(g->bytes + g->size, entry_bytes);
    memcpy(g->bytes + g->size + 4, frame + ADD_ENTRY_AT, entry_bytes);
    g->size += entry_bytes + 4;
    uint8_t *ack = g->ack[g->acks];
    put_frame_head(ack, ADD_ANSWER_BYTES, OP_ADD);
    put32(ack + 8, 0);
    memcpy(ack + 12, frame + ADD_ENTRY_AT, 16);
    g->fd[g->acks++] = fd;
}

static void serve(int epoll, struct client *c)
{
    ssize_t got = recv(c->fd, c->input + c->have, INPUT - c->have, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        watch(epoll, EPOLL_CTL_DEL, c->fd, 0, NULL); /* not closed: the journal thread may still use it */
        return;
    }
    c->have += (size_t)got;
    size_t at = 0;
    pthread_mutex_lock(&state.lock);
    while (c->have - at >= ADD_ENTRY_AT && c->have - at >= get32(c->input + at) + 4) {
        uint32_t frame_bytes = get32(c->input + at) + 4;
        take_add(c->fd, c->input + at, frame_bytes);
        at += frame_bytes;
    }
    pthread_cond_signal(&state.filled);
    pthread_mutex_unlock(&state.lock);
    c->have -= at;
    memmove(c->input, c->input + at, c->have);
}

static void start_threads(void)
{
    pthread_t journal, log;
    crc_shift_init(&lane, CRC_LANE);
    zero_journal();
    for (int i = 0; i < GROUPS; i++) {
        struct group *g = &state.group[i];
        REQUIRE(posix_memalign((void **)&g->bytes, BLOCK, GROUP_BYTES) == 0, "memory");
        g->ack = malloc(GROUP_ACKS * sizeof *g->ack);
        g->fd = malloc(GROUP_ACKS * sizeof *g->fd);
        REQUIRE(g->ack && g->fd, "memory");
        g->logged = i != 0;
    }
    REQUIRE(pthread_create(&journal, NULL, journal_thread, NULL) == 0, "thread");
    REQUIRE(pthread_create(&log, NULL, log_thread, NULL) == 0, "thread");
}

int main(int argc, char **argv)
{
    argument(argc, argv, 1, "DIRECTORY [JOURNAL_MIB [LOG_MIB]]");
    state.directory = argv[1];
    state.journal_bytes = (off_t)(argc > 2 ? argument(argc, argv, 2, "") : 1024) << 20;
    state.log_bytes = (off_t)(argc > 3 ? argument(argc, argv, 3, "") : 1024) << 20;
    start_threads();
    int epoll = epoll_create1(EPOLL_CLOEXEC), listener = listen_and_tell();
    watch(epoll, EPOLL_CTL_ADD, listener, EPOLLIN, NULL);
    for (;;) {
        struct epoll_event events[64];
        int ready = epoll_wait(epoll, events, 64, -1);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.ptr) {
                serve(epoll, events[i].data.ptr);
                continue;
            }
            struct client *c = calloc(1, sizeof *c);
            REQUIRE(c, "memory");
            c->fd = accept_connection(listener);
            watch(epoll, EPOLL_CTL_ADD, c->fd, EPOLLIN, c);
        }
    }
}
