/* A disk that forgets, for LD_PRELOAD: what was not synced can be taken back after the process was killed.

   kill -9 leaves the page cache, so it proves nothing about syncs. This library notes the old bytes of every write to
   a file below VOLATILE_ROOT in the log VOLATILE_LOG before it lets the write through, and every sync that succeeded.
   power_cut.py reads the log after the kill and puts back what no sync covers, as a power cut would have.

   VOLATILE_FAIL=SUBSTRING:N makes the N-th sync of a file whose path has the substring fail with EIO, once, and notes
   when. Writes through O_DSYNC descriptors are durable by themselves. Renames and unlinks count as durable. The
   kernel's asynchronous I/O is refused, so that every sync passes through this library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { WRITTEN = 1, SYNCED = 2, FAILED = 3 };

struct note {
    uint32_t kind;
    uint32_t size;   /* old bytes that follow, or their number if they lay behind the end: zeros */
    uint64_t inode;
    uint64_t at;     /* offset; of SYNCED: notes that the sync covers; of FAILED: the monotonic clock in ns */
    uint64_t before; /* size of the file before the write */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *root, *doomed;
static uint64_t notes;
static int log_fd = -1, syncs_left;

__attribute__((constructor)) static void begin(void)
{
    static char substring[256];
    const char *fail = getenv("VOLATILE_FAIL"), *colon = fail ? strrchr(fail, ':') : NULL;
    root = getenv("VOLATILE_ROOT");
    if (root)
        log_fd = open(getenv("VOLATILE_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (colon) {
        snprintf(substring, sizeof(substring), "%.*s", (int)(colon - fail), fail);
        doomed = substring;
        syncs_left = atoi(colon + 1);
    }
}

/* Returns whether writes to the file of fd can be forgotten, with its path and state. */
static int followed(int fd, char *path, size_t size, struct stat *state)
{
    char link[64];
    ssize_t n;
    if (log_fd < 0)
        return 0;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, size - 1);
    if (n <= 0)
        return 0;
    path[n] = 0;
    return strncmp(path, root, strlen(root)) == 0 && fstat(fd, state) == 0 && S_ISREG(state->st_mode);
}

static void append(const struct note *note, const void *old)
{
    struct iovec parts[2] = {{(void *)note, sizeof(*note)}, {(void *)old, note->size}};
    if (writev(log_fd, parts, 2) != (ssize_t)(sizeof(*note) + note->size))
        abort();
}

static void before_write(int fd, size_t size, off_t offset)
{
    char path[4096], self[64];
    struct stat state;
    struct note note = {WRITTEN, (uint32_t)size, 0, (uint64_t)offset, 0};
    int saved = errno, plain;
    char *old;
    if (size == 0 || !followed(fd, path, sizeof(path), &state) || fcntl(fd, F_GETFL) & O_DSYNC) {
        errno = saved;
        return;
    }
    old = calloc(1, size);
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    plain = open(self, O_RDONLY | O_CLOEXEC); /* without O_DIRECT, whose alignment we do not know */
    if (!old || plain < 0 || pread(plain, old, size, offset) < 0)
        abort();
    close(plain);
    note.inode = state.st_ino;
    note.before = (uint64_t)state.st_size;
    pthread_mutex_lock(&lock);
    append(&note, old);
    notes++;
    pthread_mutex_unlock(&lock);
    free(old);
    errno = saved;
}

static int sync_by(int (*real)(int), int fd)
{
    char path[4096];
    struct stat state;
    struct note note = {SYNCED, 0, 0, 0, 0};
    struct timespec now;
    int rc, ours = followed(fd, path, sizeof(path), &state);
    if (!ours)
        return real(fd);
    note.inode = state.st_ino;
    pthread_mutex_lock(&lock);
    note.at = notes; /* what is written while the sync runs is not promised by it */
    if (doomed && strstr(path, doomed) && --syncs_left == 0) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        note.kind = FAILED;
        note.at = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
        append(&note, "");
        pthread_mutex_unlock(&lock);
        errno = EIO;
        return -1;
    }
    pthread_mutex_unlock(&lock);
    rc = real(fd);
    if (rc == 0) {
        pthread_mutex_lock(&lock);
        append(&note, "");
        pthread_mutex_unlock(&lock);
    }
    return rc;
}

#define REAL(type, name) type = (void *)dlsym(RTLD_NEXT, name)

int fdatasync(int fd)
{
    static int (*real)(int);
    if (!real)
        REAL(real, "fdatasync");
    return sync_by(real, fd);
}

int fsync(int fd)
{
    static int (*real)(int);
    if (!real)
        REAL(real, "fsync");
    return sync_by(real, fd);
}

long syscall(long number, ...)
{
    static long (*real)(long, ...);
    long given[6];
    va_list list;
    if (!real)
        REAL(real, "syscall");
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        given[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_io_setup) {
        errno = ENOSYS;
        return -1;
    }
    return real(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (!real)
        REAL(real, "pwrite");
    before_write(fd, size, offset);
    return real(fd, data, size, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t offset)
{
    return pwrite(fd, data, size, offset);
}

ssize_t write(int fd, const void *data, size_t size)
{
    static ssize_t (*real)(int, const void *, size_t);
    if (!real)
        REAL(real, "write");
    if (log_fd >= 0 && fd != log_fd)
        before_write(fd, size, lseek(fd, 0, SEEK_CUR));
    return real(fd, data, size);
}

static size_t total(const struct iovec *parts, int count)
{
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size += parts[i].iov_len;
    return size;
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    static ssize_t (*real)(int, const struct iovec *, int, off_t);
    if (!real)
        REAL(real, "pwritev");
    before_write(fd, total(parts, count), offset);
    return real(fd, parts, count, offset);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t offset)
{
    return pwritev(fd, parts, count, offset);
}
