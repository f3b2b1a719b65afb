/* The bound of one add at a time: how often a block can be written and synced.
 *
 *   sync_rate DIRECTORY SECONDS [BYTES]        BYTES: per write, a multiple of 4096; prints one JSON object
 *
 * O_DIRECT writes into a preallocated file of zeroes, one after another, with an fdatasync after each.
 */
#include "../load/histogram.h"
#include "bound.h"

#include <fcntl.h>
#include <time.h>

#define FILE_BYTES (256L << 20)

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int zeroed_file(const char *path)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
    REQUIRE(fd >= 0, path);
    char *zeroes = calloc(1, 1 << 20);
    REQUIRE(zeroes, "memory");
    for (long at = 0; at < FILE_BYTES; at += 1 << 20)
        REQUIRE(pwrite(fd, zeroes, 1 << 20, at) == 1 << 20, "write");
    REQUIRE(fsync(fd) == 0, "fsync");
    free(zeroes);
    close(fd);
    fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
    REQUIRE(fd >= 0, path);
    return fd;
}

int main(int argc, char **argv)
{
    static struct histogram latency;
    const char *usage = "DIRECTORY SECONDS [BYTES]";
    char path[4096];
    long seconds = argument(argc, argv, 2, usage), bytes = argc > 3 ? argument(argc, argv, 3, usage) : 4096;
    snprintf(path, sizeof path, "%s/sync_rate", argv[1]);
    int fd = zeroed_file(path);
    void *block;
    REQUIRE(posix_memalign(&block, 4096, (size_t)bytes) == 0, "memory");
    memset(block, 1, (size_t)bytes);
    uint64_t start = now_ns(), end = start + (uint64_t)seconds * 1000000000u, now = start;
    for (long at = 0; now < end; at = at + 2 * bytes > FILE_BYTES ? 0 : at + bytes) {
        REQUIRE(pwrite(fd, block, (size_t)bytes, at) == bytes && fdatasync(fd) == 0, "write and sync");
        uint64_t done = now_ns();
        histogram_add(&latency, done - now);
        now = done;
    }
    printf("{\"bytes\": %ld, \"syncs_s\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f}\n", bytes,
           (double)latency.count * 1e9 / (double)(now - start), (double)histogram_quantile(&latency, .5) / 1e3,
           (double)histogram_quantile(&latency, .99) / 1e3);
    unlink(path);
    return 0;
}
