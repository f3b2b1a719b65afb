/* The JSON that bkload prints; perf/README.md explains each field. */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void samples_begin(struct samples *s, int server_pid)
{
    usage_of(getpid(), &s->self_before);
    if (server_pid && !usage_of(server_pid, &s->server_before))
        die("--server-pid %d: no such process", server_pid);
}

void samples_end(struct samples *s, int server_pid)
{
    usage_of(getpid(), &s->self_after);
    if (server_pid && !usage_of(server_pid, &s->server_after))
        die("--server-pid %d: the process ended during the run", server_pid);
}

static void print_load(const struct options *o)
{
    printf("{\"mode\": \"%s\", \"protocol\": %d, \"port\": %d, \"size\": %d, \"outstanding\": %d, \"connections\": %d, \"threads\": %d, "
           "\"ledgers\": %d, \"batch\": %d, \"rate\": %.0f, \"random\": %s, \"spin\": %s, ",
           o->mode_name, o->protocol, o->port, o->size, o->outstanding, o->connections, o->threads, o->ledgers,
           o->mode == MODE_BATCH ? o->batch : 0, o->rate, o->random ? "true" : "false", o->spin ? "true" : "false");
}

static void print_latency(const struct histogram *h)
{
    static const struct {
        const char *name;
        double share;
    } quantiles[] = {{"p50", .5}, {"p90", .9}, {"p99", .99}, {"p999", .999}};
    printf("\"latency_us\": {\"mean\": %.1f", h->count ? h->sum / (double)h->count / 1e3 : 0);
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++)
        printf(", \"%s\": %.1f", quantiles[i].name, (double)histogram_quantile(h, quantiles[i].share) / 1e3);
    printf(", \"max\": %.1f}, ", (double)h->max / 1e3);
}

static uint64_t print_errors(const struct tally *sum)
{
    uint64_t errors = 0;
    printf("\"errors\": {");
    for (int code = 1; code < CODES; code++) {
        char name[16] = "other";
        if (!sum->codes[code])
            continue;
        if (code < CODES - 1)
            snprintf(name, sizeof name, "%d", code);
        printf("%s\"%s\": %llu", errors ? ", " : "", name, (unsigned long long)sum->codes[code]);
        errors += sum->codes[code];
    }
    printf("}, ");
    return errors;
}

static void print_server(const struct samples *s, uint64_t entries)
{
    double cpu = s->server_after.cpu_s - s->server_before.cpu_s;
    printf(", \"server\": {\"cpu_s\": %.4f, \"user_s\": %.2f, \"system_s\": %.2f, \"cpu_s_per_million\": %.4f, "
           "\"rss_mb\": %.1f, \"peak_rss_mb\": %.1f}",
           cpu, s->server_after.user_s - s->server_before.user_s,
           s->server_after.system_s - s->server_before.system_s, entries ? cpu / (double)entries * 1e6 : 0,
           s->server_after.rss_mb, s->server_after.peak_rss_mb);
}

/* Every ledger has the entries 0 to entries_min - 1 (for adds only). */
static void print_written(const struct worker *workers, const struct options *o)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < o->threads; i++)
        for (int k = 0; k < workers[i].connection_count; k++)
            for (int j = 0; j < workers[i].connections[k].stream_count; j++) {
                int64_t written = workers[i].connections[k].streams[j].acknowledged;
                least = written < least ? written : least;
            }
    printf(", \"written\": {\"first_ledger\": %lld, \"ledgers\": %d, \"entries_min\": %lld}",
           (long long)o->first_ledger, o->ledgers, (long long)least);
}

static uint64_t missing(const struct worker *workers, const struct options *o)
{
    uint64_t sum = 0;
    for (int i = 0; i < o->threads; i++)
        for (int k = 0; k < workers[i].connection_count; k++)
            sum += workers[i].connections[k].outstanding;
    return sum;
}

static struct tally *sum_up(const struct worker *workers, int count)
{
    struct tally *sum = calloc(1, sizeof *sum);
    if (!sum)
        die("out of memory");
    for (int i = 0; i < count; i++) {
        const struct tally *one = &workers[i].tally;
        histogram_merge(&sum->latency, &one->latency);
        sum->operations += one->operations, sum->entries += one->entries, sum->bytes += one->bytes;
        sum->verified += one->verified, sum->bad += one->bad;
        for (int code = 0; code < CODES; code++)
            sum->codes[code] += one->codes[code];
        if (one->last_ns > sum->last_ns)
            sum->last_ns = one->last_ns;
    }
    return sum;
}

int report(const struct worker *workers, const struct options *o, const struct run *run, const struct samples *s)
{
    struct tally *sum = sum_up(workers, o->threads);
    uint64_t lost = missing(workers, o);
    bool by_count = o->count && sum->last_ns < run->end;
    uint64_t end = by_count || run->end == UINT64_MAX ? sum->last_ns : run->end;
    double seconds = end > run->start ? (double)(end - run->start) * 1e-9 : 1e-9;
    print_load(o);
    printf("\"seconds\": %.3f, \"operations\": %llu, \"entries\": %llu, \"ops_s\": %.1f, \"entries_s\": %.1f, "
           "\"mb_s\": %.3f, ",
           seconds, (unsigned long long)sum->operations, (unsigned long long)sum->entries,
           (double)sum->operations / seconds, (double)sum->entries / seconds, (double)sum->bytes / seconds / 1e6);
    print_latency(&sum->latency);
    uint64_t errors = print_errors(sum);
    printf("\"bad\": %llu, \"lost\": %llu, \"verified\": %llu, \"client_cpu_s\": %.4f", (unsigned long long)sum->bad,
           (unsigned long long)lost, (unsigned long long)sum->verified, s->self_after.cpu_s - s->self_before.cpu_s);
    if (o->server_pid)
        print_server(s, sum->entries);
    if (o->mode == MODE_ADD)
        print_written(workers, o);
    printf("}\n");
    int code = errors || sum->bad || lost ? 1 : 0;
    free(sum);
    return code;
}
