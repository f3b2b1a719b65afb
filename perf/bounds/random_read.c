/* The bound of cold random reads: records of one size read with plain preads, DEPTH at a time, in random order.
 *
 *   random_read DEPTH COUNT RECORD_BYTES FILE...   drops the files' pages first; prints one JSON object
 */
#include "bound.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { FILES_MAX = 64, THREADS_MAX = 256, HEADER = 1024 };

static int files[FILES_MAX];
static long records[FILES_MAX + 1]; /* number of records before this file */
static int file_count;
static size_t record_bytes;
static atomic_long left;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void *reader(void *seed)
{
    uint64_t state = (uint64_t)(uintptr_t)seed * 0x9E3779B97F4A7C15u + 1;
    char *buffer = malloc(record_bytes);
    REQUIRE(buffer, "memory");
    while (atomic_fetch_sub(&left, 1) > 0) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        long at = (long)((state >> 8) % (uint64_t)records[file_count]);
        int file = 0;
        while (at >= records[file + 1])
            file++;
        off_t offset = HEADER + (off_t)(at - records[file]) * (off_t)record_bytes;
        REQUIRE(pread(files[file], buffer, record_bytes, offset) > 0, "pread");
    }
    free(buffer);
    return NULL;
}

static void open_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0 && fsync(fd) == 0, path);
    REQUIRE((errno = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)) == 0, path);
    off_t end = lseek(fd, 0, SEEK_END);
    files[file_count] = fd;
    records[file_count + 1] = records[file_count] + (end > HEADER ? (long)((size_t)(end - HEADER) / record_bytes) : 0);
    file_count++;
}

int main(int argc, char **argv)
{
    const char *usage = "DEPTH COUNT RECORD_BYTES FILE...";
    long depth = argument(argc, argv, 1, usage), count = argument(argc, argv, 2, usage);
    pthread_t threads[THREADS_MAX];
    record_bytes = (size_t)argument(argc, argv, 3, usage);
    REQUIRE(depth > 0 && depth <= THREADS_MAX && argc > 4 && argc - 4 <= FILES_MAX, usage);
    for (int i = 4; i < argc; i++)
        open_file(argv[i]);
    double start = now_s();
    left = count;
    for (long i = 0; i < depth; i++)
        REQUIRE((errno = pthread_create(&threads[i], NULL, reader, (void *)(uintptr_t)(i + 1))) == 0, "thread");
    for (long i = 0; i < depth; i++)
        pthread_join(threads[i], NULL);
    double took = now_s() - start;
    printf("{\"reads\": %ld, \"reads_s\": %.1f, \"mean_us\": %.1f}\n", count, (double)count / took,
           took * 1e6 * (double)depth / (double)count);
    return 0;
}
