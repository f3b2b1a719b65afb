/* bkload: a load generator for one bookie, in V2 or V3, in its own process. Prints one JSON object. See perf/README.md.
 *
 *   bkload add   --port 3181 --size 1024 --outstanding 1000 --ledgers 10 --seconds 20 --warmup 5
 *   bkload fill  --port 3181 --size 1024 --ledgers 4 --entries 1000000        writes the range that the reads need
 *   bkload read  --port 3181 --size 1024 --outstanding 1000 --ledgers 4 --entries 1000000 [--random]
 *   bkload batch --port 3181 --size 1024 --outstanding 4 --batch 100 --entries 1000000
 *
 * This file has the options, threads and the measured interval. The main thread only sleeps and samples the server.
 */
#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "report.h"

void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("bkload: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(2);
}

static const struct option LONG_OPTIONS[] = {
    {"host", 1, 0, 'H'},         {"port", 1, 0, 'p'},        {"size", 1, 0, 's'},       {"outstanding", 1, 0, 'n'},
    {"connections", 1, 0, 'c'},  {"threads", 1, 0, 't'},     {"ledgers", 1, 0, 'l'},    {"first-ledger", 1, 0, 'L'},
    {"first-entry", 1, 0, 'E'},  {"entries", 1, 0, 'e'},     {"count", 1, 0, 'k'},      {"seconds", 1, 0, 'd'},
    {"warmup", 1, 0, 'w'},       {"rate", 1, 0, 'r'},        {"batch", 1, 0, 'b'},      {"batch-bytes", 1, 0, 'B'},
    {"verify", 1, 0, 'v'},       {"server-pid", 1, 0, 'P'},  {"seed", 1, 0, 'S'},       {"random", 0, 0, 'R'},
    {"spin", 0, 0, 'x'},         {"cpu", 1, 0, 'C'},         {"protocol", 1, 0, 'V'},  {0, 0, 0, 0},
};

static double number(const char *name, const char *text, double low, double high)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= low && value <= high))
        die("--%s %s: expected a number from %.0f to %.0f", name, text, low, high);
    return value;
}

static void take_option(struct options *o, int which, const char *name, const char *text)
{
    const double many = 9e15;
    switch (which) {
    case 'H': o->host = text; break;
    case 'p': o->port = (int)number(name, text, 1, 65535); break;
    case 's': o->size = (int)number(name, text, 0, 5e6); break;
    case 'n': o->outstanding = (int)number(name, text, 1, 1 << 20); break;
    case 'c': o->connections = (int)number(name, text, 1, 4096); break;
    case 't': o->threads = (int)number(name, text, 1, 64); break;
    case 'l': o->ledgers = (int)number(name, text, 1, 1e7); break;
    case 'L': o->first_ledger = (int64_t)number(name, text, 0, many); break;
    case 'E': o->first_entry = (int64_t)number(name, text, 0, many); break;
    case 'e': o->entries = (int64_t)number(name, text, 1, many); break;
    case 'k': o->count = (int64_t)number(name, text, 1, many); break;
    case 'd': o->seconds = number(name, text, 0, 1e6); break;
    case 'w': o->warmup = number(name, text, 0, 1e6); break;
    case 'r': o->rate = number(name, text, 0, 1e9); break;
    case 'b': o->batch = (int)number(name, text, 1, 1e6); break;
    case 'B': o->batch_bytes = (int64_t)number(name, text, 1, FRAME_BYTES_MAX); break;
    case 'v': o->verify = (int)number(name, text, 0, 1e9); break;
    case 'P': o->server_pid = (int)number(name, text, 1, 1 << 30); break;
    case 'C': o->cpu = (int)number(name, text, 0, CPU_SETSIZE - 1); break;
    case 'S': o->seed = (uint64_t)number(name, text, 0, many); break;
    case 'V': o->protocol = (int)number(name, text, 2, 3); break;
    case 'R': o->random = true; break;
    case 'x': o->spin = true; break;
    default: exit(2); /* getopt has printed the reason */
    }
}

static void take_mode(struct options *o, const char *name)
{
    o->mode_name = name;
    if (!strcmp(name, "add") || !strcmp(name, "fill"))
        o->mode = MODE_ADD;
    else if (!strcmp(name, "read"))
        o->mode = MODE_READ;
    else if (!strcmp(name, "batch"))
        o->mode = MODE_BATCH;
    else
        die("mode %s: expected add, fill, read or batch", name);
}

static void check_options(struct options *o)
{
    if (!strcmp(o->mode_name, "fill"))
        o->count = o->entries * o->ledgers;
    if (o->connections < o->threads)
        die("--threads %d: more than --connections %d", o->threads, o->connections);
    if (o->outstanding < o->connections)
        die("--outstanding %d: fewer than --connections %d", o->outstanding, o->connections);
    if (o->mode == MODE_ADD && o->ledgers < o->connections)
        die("--ledgers %d: fewer than --connections %d, a ledger has one writer", o->ledgers, o->connections);
    if (o->count == 0 && o->seconds == 0)
        die("give --seconds, --count, or both");
    if (o->mode == MODE_BATCH && o->entries < o->batch)
        die("--entries %lld: fewer than --batch %d", (long long)o->entries, o->batch);
    int64_t head = o->protocol == 3 ? V3_COUNTED_HEAD : BATCH_ANSWER_BYTES, each = o->protocol == 3 ? V3_COUNTED_EACH : 4;
    int64_t batch_frame = head + (int64_t)o->batch * (each + ENTRY_HEAD_BYTES + o->size);
    if (o->protocol == 3 && o->first_entry + (o->count ? o->count : o->entries) >= 1ll << 7 * V3_ENTRY_WIDTH)
        die("--first-entry %lld: V3 requests of this program number entries below %lld", (long long)o->first_entry,
            1ll << 7 * V3_ENTRY_WIDTH);
    if (o->mode == MODE_BATCH && batch_frame > o->batch_bytes)
        die("--batch %d: needs %lld bytes, --batch-bytes is %lld", o->batch, (long long)batch_frame,
            (long long)o->batch_bytes);
}

static struct options parse_options(int argc, char **argv)
{
    struct options o = {.host = "127.0.0.1", .port = 3181, .size = 1024, .outstanding = 1, .connections = 1,
                        .threads = 1, .ledgers = 1, .batch = 100, .entries = 1, .batch_bytes = 5 * 1024 * 1024,
                        .seed = 1, .cpu = -1, .protocol = 2};
    if (argc < 2)
        die("usage: bkload add|fill|read|batch [--option value]...");
    take_mode(&o, argv[1]);
    int which, index = 0;
    while ((which = getopt_long(argc - 1, argv + 1, "", LONG_OPTIONS, &index)) != -1)
        take_option(&o, which, LONG_OPTIONS[index].name, optarg);
    if (optind < argc - 1)
        die("%s: not an option", argv[optind + 1]);
    check_options(&o);
    return o;
}

static int connect_to(const struct options *o)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)o->port)};
    int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (inet_pton(AF_INET, o->host, &address.sin_addr) != 1)
        die("--host %s: expected an IPv4 address", o->host);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        die("cannot connect to %s:%d: %s", o->host, o->port, strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return fd;
}

/* Ledger j belongs to connection j mod connections; with fewer ledgers, readers share them at staggered positions. */
static void assign_streams(struct connection *c, const struct options *o, int index)
{
    bool own = o->ledgers >= o->connections;
    c->stream_count = own ? (o->ledgers - index + o->connections - 1) / o->connections : 1;
    c->streams = calloc((size_t)c->stream_count, sizeof *c->streams);
    if (!c->streams)
        die("out of memory for %d ledgers", o->ledgers);
    int64_t turns = own || o->mode == MODE_ADD ? 0 : o->entries / o->batch * index / o->connections;
    for (int i = 0; i < c->stream_count; i++) {
        int ledger = own ? index + i * o->connections : index % o->ledgers;
        c->streams[i] = (struct stream){o->first_ledger + ledger, o->first_entry + turns * o->batch, 0};
        c->streams[i].acknowledged = o->mode == MODE_ADD ? o->first_entry : 0;
    }
}

static void init_connection(struct connection *c, const struct options *o, int index)
{
    int n = o->connections;
    c->options = o;
    c->window = (uint32_t)((o->outstanding - index + n - 1) / n);
    c->limit = o->count ? (uint64_t)((o->count - index + n - 1) / n) : UINT64_MAX;
    c->random = (o->seed + (uint64_t)index + 1) * 0x9e3779b97f4a7c15u;
    c->current = -1;
    c->input = malloc(INPUT_BYTES);
    c->frame = o->verify ? malloc(FRAME_BYTES_MAX) : NULL;
    if (!c->input || (o->verify && !c->frame))
        die("out of memory");
    if (o->rate > 0)
        c->period = (uint64_t)(1e9 * n / o->rate);
    assign_streams(c, o, index);
    requests_init(c);
    c->fd = connect_to(o);
}

static void init_worker(struct worker *w, const struct options *o, struct run *run, int index)
{
    w->options = o;
    w->run = run;
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    w->connection_count = (o->connections - index + o->threads - 1) / o->threads;
    w->connections = calloc((size_t)w->connection_count, sizeof *w->connections);
    if (w->epoll < 0 || !w->connections)
        die("cannot set up a worker: %s", strerror(errno));
    for (int i = 0; i < w->connection_count; i++) {
        struct connection *c = &w->connections[i];
        init_connection(c, o, index + i * o->threads);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, c->fd, &event) < 0)
            die("epoll_ctl: %s", strerror(errno));
    }
}

/* Fixed rates start now, the connections evenly staggered; measuring starts after the warm-up. */
static void start(struct worker *workers, const struct options *o, struct run *run)
{
    uint64_t now = now_ns();
    run->start = now + (uint64_t)(o->warmup * 1e9);
    run->end = o->seconds > 0 ? run->start + (uint64_t)(o->seconds * 1e9) : UINT64_MAX;
    run->measuring = o->threads;
    for (int i = 0; i < o->threads; i++) {
        for (int k = 0; k < workers[i].connection_count; k++) {
            struct connection *c = &workers[i].connections[k];
            c->due = now + c->period * (uint64_t)(i + k * o->threads) / (uint64_t)o->connections;
        }
        if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) != 0)
            die("cannot start thread %d", i);
    }
}

/* The placement of client and server on CPUs changes the rate by a third, so the client is pinned. */
static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) < 0)
        die("--cpu %d: %s", cpu, strerror(errno));
}

static void sleep_until(uint64_t ns)
{
    struct timespec at = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
}

static void wait_measured(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    while (run->measuring)
        pthread_cond_wait(&run->changed, &run->lock);
    pthread_mutex_unlock(&run->lock);
}

int main(int argc, char **argv)
{
    struct options o = parse_options(argc, argv);
    struct run run = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct worker *workers = calloc((size_t)o.threads, sizeof *workers);
    struct samples samples;
    if (!workers)
        die("out of memory");
    if (o.cpu >= 0)
        pin(o.cpu);
    for (int i = 0; i < o.threads; i++)
        init_worker(&workers[i], &o, &run, i);
    start(workers, &o, &run);
    sleep_until(run.start);
    samples_begin(&samples, o.server_pid);
    wait_measured(&run);
    samples_end(&samples, o.server_pid);
    for (int i = 0; i < o.threads; i++)
        pthread_join(workers[i].thread, NULL);
    return report(workers, &o, &run, &samples);
}
