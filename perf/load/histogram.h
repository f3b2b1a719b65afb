/* Latencies in nanoseconds, log-linear: 128 steps per octave, so the error is below 0.8 %. Used by one thread each. */
#ifndef PERF_HISTOGRAM_H
#define PERF_HISTOGRAM_H
#include <stdint.h>

#define HISTOGRAM_STEPS 128
#define HISTOGRAM_BUCKETS (58 * HISTOGRAM_STEPS)

struct histogram {
    uint64_t bucket[HISTOGRAM_BUCKETS];
    uint64_t count, max;
    double sum;
};

static inline unsigned histogram_index(uint64_t value)
{
    if (value < HISTOGRAM_STEPS)
        return (unsigned)value;
    unsigned shift = 63 - 7 - (unsigned)__builtin_clzll(value);
    return (shift + 1) * HISTOGRAM_STEPS + (unsigned)(value >> shift) - HISTOGRAM_STEPS;
}

static inline void histogram_add(struct histogram *h, uint64_t value)
{
    h->bucket[histogram_index(value)]++;
    h->count++;
    h->sum += (double)value;
    if (value > h->max)
        h->max = value;
}

static inline void histogram_merge(struct histogram *into, const struct histogram *from)
{
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        into->bucket[i] += from->bucket[i];
    into->count += from->count;
    into->sum += from->sum;
    if (from->max > into->max)
        into->max = from->max;
}

/* Returns the largest value of the bucket that has this quantile; 0 for an empty histogram. */
static inline uint64_t histogram_quantile(const struct histogram *h, double share)
{
    uint64_t wanted = (uint64_t)(share * (double)h->count + 0.5), seen = 0;
    if (wanted < 1)
        wanted = 1;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS && h->count; i++) {
        seen += h->bucket[i];
        if (seen < wanted)
            continue;
        if (i < HISTOGRAM_STEPS)
            return i;
        unsigned shift = i / HISTOGRAM_STEPS - 1;
        uint64_t high = ((uint64_t)(i % HISTOGRAM_STEPS + HISTOGRAM_STEPS + 1) << shift) - 1;
        return high < h->max ? high : h->max;
    }
    return 0;
}
#endif
