/* The bound of cold reads: files read once from disk, sequentially, 1 MiB at a time.
 *
 *   cold_read FILE...        drops their pages from the page cache, then reads them; prints one JSON object
 *   cold_read --drop FILE... only drops
 */
#include "bound.h"

#include <fcntl.h>
#include <time.h>

enum { STEP = 1 << 20 };

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int open_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0, path);
    return fd;
}

static void drop(const char *path)
{
    int fd = open_file(path);
    REQUIRE(fsync(fd) == 0, path); /* dirty pages cannot be dropped */
    REQUIRE((errno = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)) == 0, path);
    close(fd);
}

static long read_file(const char *path, char *buffer)
{
    int fd = open_file(path);
    long bytes = 0;
    for (ssize_t got; (got = pread(fd, buffer, STEP, bytes)) != 0; bytes += got)
        REQUIRE(got > 0, path);
    close(fd);
    return bytes;
}

int main(int argc, char **argv)
{
    bool only_drop = argc > 1 && !strcmp(argv[1], "--drop");
    long bytes = 0;
    char *buffer = malloc(STEP);
    REQUIRE(buffer, "memory");
    argument(argc, argv, only_drop ? 2 : 1, "[--drop] FILE...");
    for (int i = only_drop ? 2 : 1; i < argc; i++)
        drop(argv[i]);
    if (only_drop)
        return 0;
    double start = now_s();
    for (int i = 1; i < argc; i++)
        bytes += read_file(argv[i], buffer);
    double seconds = now_s() - start;
    printf("{\"bytes\": %ld, \"seconds\": %.4f, \"mb_s\": %.1f}\n", bytes, seconds, (double)bytes / seconds / 1e6);
    return 0;
}
