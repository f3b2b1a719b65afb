/* A disk that forgets what was not synced, fails, stalls and fills up as planned.

   The files really exist, on a file system in memory, so that they can be mapped. Before each change to a file or a
   name below the root, what undoes it is noted in `shared->undo`; a sync notes what it covers. `disk_cut`, called by
   the parent process after the bookie has died, undoes what no sync covers, as a power cut may.

   The model of the file system: the data of a file is durable after a sync of that file, sector by sector in any order
   before that. Names of a directory (creations, renames, removals) become durable in their order, all at the latest
   with a sync of the directory. */
#define _GNU_SOURCE
#include "world.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/syscall.h>

enum { SECTOR = 512, PATH_MAX_BYTES = 200, RULES_MAX = 32, UNDOS_MAX = 1 << 14, COVERS = 1 << 16, DURABLE_MAX = 64 };
enum { UNDO_WRITE, UNDO_SIZE, UNDO_SYNC, UNDO_CREATE, UNDO_RENAME, UNDO_UNLINK, UNDO_MKDIR, UNDO_RMDIR, UNDO_DIRSYNC };

struct undo {
    int32_t kind, size;         /* of the data that follows, padded to 8 bytes: old bytes, or a path, or two */
    uint64_t inode;
    int64_t at, before;         /* offset, and the size of the file before */
    int64_t grave;              /* of a removed or replaced file; 0 for none */
};

struct rule {
    int64_t ops, action, nth, times, argument;
    char part[64];              /* that the path contains */
};

struct file {
    int known, durable, append;
    uint64_t inode;
    char path[PATH_MAX_BYTES];
};

static struct rule rules[RULES_MAX];
static int rule_count;
static struct file files[FDS_MAX];

int disk_root(const char *path)
{
    size_t size = strlen(shared->root);
    return size && path && strncmp(path, shared->root, size) == 0 && strlen(path) < PATH_MAX_BYTES;
}

static struct file *file_of(int fd)
{
    return fd >= 0 && fd < FDS_MAX && files[fd].known ? &files[fd] : NULL;
}

static const char *short_path(const char *path)
{
    return path + strlen(shared->root);
}

/* --- faults and time ---------------------------------------------------------------------------------------------- */

void disk_rule(int64_t ops, const char *part, int64_t action, int64_t nth, int64_t times, int64_t argument)
{
    struct rule *rule = &rules[rule_count++ % RULES_MAX];
    *rule = (struct rule){ops, action, nth, times, argument, ""};
    snprintf(rule->part, sizeof(rule->part), "%s", part);
}

void disk_no_rules(void)
{
    rule_count = 0;
}

static struct rule *due(enum op op, const char *path)
{
    struct rule *found = NULL;
    for (int i = 0; i < rule_count; i++) {
        struct rule *rule = &rules[i];
        if (!(rule->ops >> op & 1) || !strstr(path, rule->part))
            continue;
        if (rule->nth > 1) {
            rule->nth--;
            continue;
        }
        if (rule->times == 0 || found)
            continue;
        rule->times -= rule->times > 0;
        found = rule;
    }
    return found;
}

static int is_full(void)
{
    return shared->now >= shared->settings.full_from && shared->now < shared->settings.full_to;
}

/* Let a call take its time, and decide what becomes of it: an action, or -errno. */
static int judge(enum op op, const char *path, int64_t a, int64_t b, int64_t *argument)
{
    const struct settings *s = &shared->settings;
    int64_t mean = op == OP_SYNC ? s->sync_ns : s->disk_ns;
    struct rule *rule;
    step(op, a, b, path);
    sleep_ns(mean / 4 + (int64_t)(draw() % (uint64_t)(2 * mean + 1)));
    rule = due(op, path);
    if (!rule)
        return 0;
    *argument = rule->argument;
    switch (rule->action) {
    case FAULT_EIO:
        shared->faults++;
        return -EIO;
    case FAULT_ENOSPC:
        return -ENOSPC;
    case FAULT_STALL:
        sleep_ns(rule->argument);
        return 0;
    default:
        return (int)rule->action;
    }
}

static int fail(int error)
{
    errno = -error;
    return -1;
}

/* --- what can be undone ------------------------------------------------------------------------------------------- */

static const char *path_in(const struct undo *undo)
{
    return (const char *)(undo + 1);
}

static const char *other_in(const struct undo *undo)
{
    return path_in(undo) + strlen(path_in(undo)) + 1;
}

static const char *grave_path(int64_t grave)
{
    static char path[300];
    snprintf(path, sizeof(path), "%s/%lld", shared->graveyard, (long long)grave);
    return path;
}

static struct undo *undos[UNDOS_MAX];
static int64_t undo_count;
static int64_t covered[THREADS_MAX]; /* up to where the sync covers that a thread is in */

/* Up to where the syncs that were seen so far cover the changes to a file, or to the names of a directory: a hash table
   by the number of the file, or by the path of the directory. */
struct cover {
    uint64_t key;
    int64_t until;
};

static struct cover covers[COVERS];

static const char *named(const struct undo *undo)
{
    return undo->kind == UNDO_RENAME ? other_in(undo) : path_in(undo);
}

static struct cover *cover_of(uint64_t key)
{
    uint64_t at = key * 0x9E3779B97F4A7C15u >> 40;
    while (covers[at % COVERS].key != 0 && covers[at % COVERS].key != key)
        at++;
    return &covers[at % COVERS];
}

/* Return the key of a directory, which no file has: file numbers are small. */
static uint64_t directory_key(const char *path, size_t size)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)path[i]) * 0x100000001B3u;
    return hash | UINT64_C(1) << 63;
}

static uint64_t key_of(const struct undo *undo)
{
    if (undo->kind == UNDO_WRITE || undo->kind == UNDO_SIZE || undo->kind == UNDO_SYNC)
        return undo->inode;
    if (undo->kind == UNDO_DIRSYNC)
        return directory_key(path_in(undo), strlen(path_in(undo)));
    return directory_key(named(undo), (size_t)(strrchr(named(undo), '/') - named(undo)));
}

/* Collect the changes that no sync covers in `undos`. */
static void collect(void)
{
    int64_t at = 0, kept_undos = 0;
    undo_count = 0;
    memset(covers, 0, sizeof(covers));
    while (at < shared->undo_bytes) {
        struct undo *undo = (struct undo *)(shared->undo + at);
        undos[undo_count++] = undo;
        at += (int64_t)sizeof(struct undo) + (undo->size + 7) / 8 * 8;
    }
    for (int64_t i = undo_count - 1; i >= 0; i--) {
        struct cover *cover = cover_of(key_of(undos[i]));
        if (undos[i]->kind == UNDO_SYNC || undos[i]->kind == UNDO_DIRSYNC) {
            cover->key = key_of(undos[i]);
            if (undos[i]->at > cover->until)
                cover->until = undos[i]->at;
            undos[i] = NULL;
        } else if (cover->until > (char *)undos[i] - shared->undo) {
            if (undos[i]->grave)
                unlink(grave_path(undos[i]->grave));
            undos[i] = NULL;
        }
    }
    for (int64_t i = 0; i < undo_count; i++)
        if (undos[i])
            undos[kept_undos++] = undos[i];
    undo_count = kept_undos;
}

/* Drop the notes of changes that are durable, and of syncs. */
static void forget_covered(void)
{
    int64_t end = 0, moved[THREADS_MAX] = {0};
    collect();
    for (int64_t i = 0; i < undo_count; i++) {
        int64_t size = (int64_t)sizeof(struct undo) + (undos[i]->size + 7) / 8 * 8;
        for (int t = 0; t < THREADS_MAX; t++)
            if ((char *)undos[i] - shared->undo < covered[t])
                moved[t] = end + size;
        memmove(shared->undo + end, undos[i], (size_t)size);
        end += size;
    }
    memcpy(covered, moved, sizeof(covered));
    shared->undo_bytes = end;
    shared->undo_count = undo_count;
}

static struct undo *note(int kind, int64_t data_bytes)
{
    int64_t size = (int64_t)sizeof(struct undo) + (data_bytes + 7) / 8 * 8;
    struct undo *undo;
    if (shared->undo_bytes + size > UNDO_BYTES || shared->undo_count >= UNDOS_MAX)
        forget_covered();
    if (shared->undo_bytes + size > UNDO_BYTES || shared->undo_count >= UNDOS_MAX)
        finish(OVERFLOWN, "too much is not synced to the simulated disk");
    undo = (struct undo *)(shared->undo + shared->undo_bytes);
    shared->undo_bytes += size;
    shared->undo_count++;
    *undo = (struct undo){.kind = kind, .size = (int32_t)data_bytes};
    return undo;
}

static void note_path(int kind, const char *path, const char *other, int64_t grave)
{
    size_t first = strlen(path) + 1, second = other ? strlen(other) + 1 : 0;
    struct undo *undo = note(kind, (int64_t)(first + second));
    memcpy(undo + 1, path, first);
    if (other)
        memcpy((char *)(undo + 1) + first, other, second);
    undo->grave = grave;
}

/* Keep a file that is about to lose its name, and return the number of its grave; 0 if there is no such file. */
static int64_t bury(const char *path)
{
    struct stat state;
    if (lstat(path, &state) != 0 || !S_ISREG(state.st_mode))
        return 0;
    return link(path, grave_path(++shared->graves)) == 0 ? shared->graves : 0;
}

static void before_change(int fd, struct file *file, int64_t at, int64_t size)
{
    struct stat state;
    struct undo *undo;
    char own[64];
    int plain;
    if (file->durable || size <= 0)
        return;
    fstat(fd, &state);
    undo = note(UNDO_WRITE, size);
    undo->inode = file->inode;
    undo->at = at;
    undo->before = state.st_size;
    memset(undo + 1, 0, (size_t)size);
    if (at < state.st_size) {
        snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
        plain = open(own, O_RDONLY | O_CLOEXEC);
        if (plain < 0 || pread(plain, undo + 1, (size_t)size, at) < 0)
            finish(OVERFLOWN, "the disk cannot read what a write replaces");
        close(plain);
    }
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static void know(int fd, const char *path, int flags)
{
    struct stat state;
    if (fd < 0 || fd >= FDS_MAX)
        return;
    fstat(fd, &state);
    files[fd] = (struct file){1, (flags & O_DSYNC) == O_DSYNC, (flags & O_APPEND) != 0, state.st_ino, ""};
    snprintf(files[fd].path, sizeof(files[fd].path), "%s", path);
}

static int open_below_root(const char *path, int flags, int mode)
{
    int64_t argument = 0;
    int fd, verdict, made = (flags & O_CREAT) && access(path, F_OK) != 0;
    verdict = judge(OP_OPEN, short_path(path), flags, 0, &argument);
    if (verdict < 0)
        return fail(verdict);
    if (made && is_full())
        return fail(-ENOSPC);
    fd = open(path, flags & ~(O_DIRECT | O_TRUNC), mode);
    if (fd < 0)
        return fd;
    know(fd, path, flags);
    if (made)
        note_path(UNDO_CREATE, path, NULL, 0);
    else if (flags & O_TRUNC) {
        struct stat state;
        fstat(fd, &state);
        before_change(fd, &files[fd], 0, state.st_size);
        if (ftruncate(fd, 0) != 0)
            return -1;
    }
    return fd;
}

static int world_open(const char *path, int flags, ...)
{
    int mode;
    va_list list;
    va_start(list, flags);
    mode = va_arg(list, int);
    va_end(list);
    return self && disk_root(path) ? open_below_root(path, flags, mode) : open(path, flags, mode);
}

static int world_close(int fd)
{
    if (self && network_owns(fd))
        network_forget(fd);
    if (self && file_of(fd)) {
        step(OP_CLOSE, 0, 0, short_path(files[fd].path));
        files[fd].known = 0;
    }
    return close(fd);
}

static int world_dup3(int from, int to, int flags)
{
    int rc = dup3(from, to, flags);
    if (self && rc >= 0 && rc < FDS_MAX && from < FDS_MAX)
        files[rc] = files[from];
    return rc;
}

static ssize_t reading(int fd, void *data, size_t size, off_t at, int positioned)
{
    struct file *file = self ? file_of(fd) : NULL;
    int64_t argument = 0;
    int verdict;
    ssize_t n;
    if (self && network_owns(fd))
        return network_read(fd, data, size);
    if (!file)
        return positioned ? pread(fd, data, size, at) : read(fd, data, size);
    verdict = judge(OP_READ, short_path(file->path), at, (int64_t)size, &argument);
    if (verdict < 0)
        return fail(verdict);
    if (verdict == FAULT_SHORT && size > 1)
        size = 1 + draw() % (size - 1);
    n = positioned ? pread(fd, data, size, at) : read(fd, data, size);
    if (verdict == FAULT_ROT && n > 0)
        ((unsigned char *)data)[draw() % (uint64_t)n] ^= (unsigned char)(1u << draw() % 8);
    return n;
}

static ssize_t world_pread(int fd, void *data, size_t size, off_t at)
{
    return reading(fd, data, size, at, 1);
}

static ssize_t world_read(int fd, void *data, size_t size)
{
    return reading(fd, data, size, 0, 0);
}

/* Write `parts` at an offset. A kill in the middle leaves any subset of the sectors. */
static ssize_t writing(int fd, struct file *file, const struct iovec *parts, int count, int64_t at)
{
    struct iovec less[IOV_MAX];
    struct stat state;
    int64_t size = 0, argument = 0, left;
    int verdict, n = 0;
    for (int i = 0; i < count; i++)
        size += (int64_t)parts[i].iov_len;
    verdict = judge(OP_WRITE, short_path(file->path), at, size, &argument);
    if (verdict < 0)
        return fail(verdict);
    fstat(fd, &state);
    if (is_full() && at + size > state.st_blocks * 512)
        return fail(-ENOSPC);
    if (verdict == FAULT_LOST) {
        shared->faults++;
        return size;
    }
    left = verdict == FAULT_SHORT && size > 1 ? 1 + (int64_t)(draw() % (uint64_t)(size - 1)) : size;
    before_change(fd, file, at, left);
    for (n = 0; n < count && left > 0; n++) {
        less[n] = parts[n];
        if ((int64_t)less[n].iov_len > left)
            less[n].iov_len = (size_t)left;
        left -= (int64_t)less[n].iov_len;
    }
    return pwritev(fd, less, n, at);
}

static ssize_t world_pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
    struct file *file = self ? file_of(fd) : NULL;
    return file ? writing(fd, file, parts, count, at) : pwritev(fd, parts, count, at);
}

static ssize_t world_pwrite(int fd, const void *data, size_t size, off_t at)
{
    struct file *file = self ? file_of(fd) : NULL;
    struct iovec part = {(void *)data, size};
    return file ? writing(fd, file, &part, 1, at) : pwrite(fd, data, size, at);
}

static ssize_t streaming(int fd, struct file *file, const struct iovec *parts, int count)
{
    int64_t at = lseek(fd, 0, file->append ? SEEK_END : SEEK_CUR);
    ssize_t n = writing(fd, file, parts, count, at);
    if (n > 0)
        lseek(fd, at + n, SEEK_SET);
    return n;
}

static ssize_t world_write(int fd, const void *data, size_t size)
{
    struct file *file = self ? file_of(fd) : NULL;
    struct iovec part = {(void *)data, size};
    if (self && network_owns(fd))
        return network_write(fd, data, size);
    return file ? streaming(fd, file, &part, 1) : write(fd, data, size);
}

static ssize_t world_writev(int fd, const struct iovec *parts, int count)
{
    struct file *file = self ? file_of(fd) : NULL;
    return file ? streaming(fd, file, parts, count) : writev(fd, parts, count);
}

static int syncing(int fd, int (*real)(int))
{
    struct file *file = self ? file_of(fd) : NULL;
    struct stat state;
    struct undo *undo;
    int64_t argument = 0;
    int verdict;
    if (!file)
        return real(fd);
    covered[self->id] = shared->undo_bytes; /* a sync promises nothing about what is written while it runs */
    verdict = judge(OP_SYNC, short_path(file->path), 0, 0, &argument);
    if (verdict < 0)
        return fail(verdict);
    if (verdict == FAULT_LOST)
        return 0;
    fstat(fd, &state);
    undo = note(S_ISDIR(state.st_mode) ? UNDO_DIRSYNC : UNDO_SYNC, (int64_t)strlen(file->path) + 1);
    undo->inode = file->inode;
    undo->at = covered[self->id];
    memcpy(undo + 1, file->path, strlen(file->path) + 1);
    return 0;
}

static int world_fdatasync(int fd)
{
    return syncing(fd, fdatasync);
}

static int world_fsync(int fd)
{
    return syncing(fd, fsync);
}

static int world_ftruncate(int fd, off_t size)
{
    struct file *file = self ? file_of(fd) : NULL;
    struct stat state;
    struct undo *undo;
    int64_t argument = 0;
    int verdict;
    if (!file)
        return ftruncate(fd, size);
    verdict = judge(OP_TRUNCATE, short_path(file->path), size, 0, &argument);
    if (verdict < 0)
        return fail(verdict);
    fstat(fd, &state);
    if (size < state.st_size)
        before_change(fd, file, size, state.st_size - size);
    else {
        undo = note(UNDO_SIZE, 0);
        undo->inode = file->inode;
        undo->before = state.st_size;
    }
    return ftruncate(fd, size);
}

static int world_fallocate(int fd, int mode, off_t at, off_t size)
{
    struct file *file = self ? file_of(fd) : NULL;
    struct stat state;
    struct undo *undo;
    int64_t argument = 0;
    int verdict;
    if (!file)
        return fallocate(fd, mode, at, size);
    verdict = judge(OP_ALLOCATE, short_path(file->path), at, size, &argument);
    if (verdict < 0)
        return fail(verdict);
    if (is_full())
        return fail(-ENOSPC);
    fstat(fd, &state);
    if (!(mode & FALLOC_FL_KEEP_SIZE) && at + size > state.st_size) {
        undo = note(UNDO_SIZE, 0);
        undo->inode = file->inode;
        undo->before = state.st_size;
    }
    return fallocate(fd, mode, at, size);
}

/* --- names -------------------------------------------------------------------------------------------------------- */

static int world_rename(const char *from, const char *to)
{
    int64_t argument = 0, grave;
    int verdict, rc;
    if (!self || !disk_root(from))
        return rename(from, to);
    verdict = judge(OP_RENAME, short_path(to), 0, 0, &argument);
    if (verdict < 0)
        return fail(verdict);
    grave = bury(to);
    rc = rename(from, to);
    if (rc == 0)
        note_path(UNDO_RENAME, from, to, grave);
    for (int fd = 0; rc == 0 && fd < FDS_MAX; fd++)
        if (files[fd].known && strcmp(files[fd].path, from) == 0)
            snprintf(files[fd].path, sizeof(files[fd].path), "%s", to);
    return rc;
}

static int world_unlink(const char *path)
{
    int64_t argument = 0, grave;
    int verdict, rc;
    if (!self || !disk_root(path))
        return unlink(path);
    verdict = judge(OP_UNLINK, short_path(path), 0, 0, &argument);
    if (verdict < 0)
        return fail(verdict);
    grave = bury(path);
    rc = unlink(path);
    if (rc == 0)
        note_path(UNDO_UNLINK, path, NULL, grave);
    return rc;
}

static int world_mkdir(const char *path, mode_t mode)
{
    int64_t argument = 0;
    int verdict, rc;
    if (!self || !disk_root(path))
        return mkdir(path, mode);
    verdict = judge(OP_MKDIR, short_path(path), 0, 0, &argument);
    if (verdict < 0)
        return fail(verdict);
    rc = mkdir(path, mode);
    if (rc == 0)
        note_path(UNDO_MKDIR, path, NULL, 0);
    return rc;
}

static int world_rmdir(const char *path)
{
    int rc;
    if (!self || !disk_root(path))
        return rmdir(path);
    step(OP_UNLINK, 0, 0, short_path(path));
    rc = rmdir(path);
    if (rc == 0)
        note_path(UNDO_RMDIR, path, NULL, 0);
    return rc;
}

static void space(struct statvfs *out)
{
    const uint64_t blocks = UINT64_C(25) << 20; /* 100 GiB of 4 KiB */
    *out = (struct statvfs){.f_bsize = 4096, .f_frsize = 4096, .f_blocks = blocks};
    out->f_bfree = out->f_bavail = is_full() ? 0 : blocks / 2;
    out->f_files = out->f_ffree = out->f_favail = 1 << 20;
    out->f_namemax = 255;
}

static int world_statvfs(const char *path, struct statvfs *out)
{
    if (!self || !disk_root(path))
        return statvfs(path, out);
    step(OP_STATVFS, 0, 0, short_path(path));
    space(out);
    return 0;
}

static int world_fstatvfs(int fd, struct statvfs *out)
{
    if (!self || !file_of(fd))
        return fstatvfs(fd, out);
    step(OP_STATVFS, 0, 0, short_path(files[fd].path));
    space(out);
    return 0;
}

static int world_fcntl(int fd, int command, ...)
{
    va_list list;
    void *argument;
    va_start(list, command);
    argument = va_arg(list, void *);
    va_end(list);
    if (self && file_of(fd) && command == F_SETFL)
        argument = (void *)((intptr_t)argument & ~(intptr_t)O_DIRECT);
    return fcntl(fd, command, argument);
}

static long world_syscall(long number, ...)
{
    long given[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        given[i] = va_arg(list, long);
    va_end(list);
    if (self && number == SYS_io_setup) { /* so that every sync comes by fdatasync */
        errno = ENOSYS;
        return -1;
    }
    return syscall(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

const struct replacement disk_replacements[] = {
    {"open", world_open, 1}, {"open64", world_open, 1},
    {"close", world_close, 1},
    {"dup3", world_dup3, 0},
    {"read", world_read, 1},
    {"pread", world_pread, 1}, {"pread64", world_pread, 1},
    {"write", world_write, 1}, {"writev", world_writev, 1},
    {"pwrite", world_pwrite, 1}, {"pwrite64", world_pwrite, 1},
    {"pwritev", world_pwritev, 1}, {"pwritev64", world_pwritev, 1},
    {"fdatasync", world_fdatasync, 1}, {"fsync", world_fsync, 1},
    {"ftruncate", world_ftruncate, 1}, {"ftruncate64", world_ftruncate, 1},
    {"fallocate", world_fallocate, 1}, {"fallocate64", world_fallocate, 1},
    {"rename", world_rename, 1}, {"unlink", world_unlink, 1},
    {"mkdir", world_mkdir, 1}, {"rmdir", world_rmdir, 1},
    {"statvfs", world_statvfs, 1}, {"statvfs64", world_statvfs, 1},
    {"fstatvfs", world_fstatvfs, 1}, {"fstatvfs64", world_fstatvfs, 1},
    {"fcntl", world_fcntl, 0}, {"fcntl64", world_fcntl, 0},
    {"syscall", world_syscall, 0},
    {NULL, NULL, 0},
};

/* --- the power cut, in the parent process ------------------------------------------------------------------------- */

struct kept {
    uint64_t inode;
    char path[300];
};

static struct kept kept[4096];
static int kept_count;

static int keep(const char *path, const struct stat *state, int kind, struct FTW *walk)
{
    (void)walk;
    if (kind == FTW_F && kept_count < 4096) {
        kept[kept_count].inode = state->st_ino;
        snprintf(kept[kept_count++].path, sizeof(kept[0].path), "%s", path);
    }
    return 0;
}

static const char *path_of(uint64_t inode)
{
    for (int i = 0; i < kept_count; i++)
        if (kept[i].inode == inode)
            return kept[i].path;
    return NULL;
}

static uint64_t cut_state;

static uint64_t cut_draw(void)
{
    uint64_t z = (cut_state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static void undo_write(const struct undo *undo, int how)
{
    const char *path = path_of(undo->inode);
    int64_t sectors = (undo->size + SECTOR - 1) / SECTOR, one = (int64_t)(cut_draw() % (uint64_t)(sectors ? sectors : 1));
    int fd = path ? open(path, O_RDWR) : -1;
    if (fd < 0 || how == 0) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (int64_t i = 0; i < sectors; i++) {
        int64_t size = undo->size - i * SECTOR < SECTOR ? undo->size - i * SECTOR : SECTOR;
        if (how == 1 || (how == 2 && cut_draw() % 2) || (how == 3 && i == one))
            if (pwrite(fd, (const char *)(undo + 1) + i * SECTOR, (size_t)size, undo->at + i * SECTOR) != size)
                abort();
    }
    if (how == 1 && undo->before < undo->at + undo->size && ftruncate(fd, undo->before) != 0)
        abort();
    close(fd);
}

static void undo_name(const struct undo *undo)
{
    switch (undo->kind) {
    case UNDO_CREATE:
        unlink(path_in(undo));
        break;
    case UNDO_RENAME:
        rename(other_in(undo), path_in(undo));
        if (undo->grave)
            rename(grave_path(undo->grave), other_in(undo));
        break;
    case UNDO_UNLINK:
        if (undo->grave)
            rename(grave_path(undo->grave), path_in(undo));
        break;
    case UNDO_MKDIR:
        rmdir(path_in(undo));
        break;
    case UNDO_RMDIR:
        mkdir(path_in(undo), 0700);
        break;
    default:
        break;
    }
}

static int64_t undo_data(int64_t mode)
{
    int64_t undone = 0;
    for (int64_t i = undo_count - 1; i >= 0; i--) {
        const struct undo *undo = undos[i];
        const char *path = path_of(undo->inode);
        if (undo->kind == UNDO_WRITE) {
            undo_write(undo, mode == 1 ? 1 : (int)(cut_draw() % 5));
            undone++;
        } else if (undo->kind == UNDO_SIZE && path && (mode == 1 || cut_draw() % 2))
            undone += truncate(path, undo->before) == 0;
    }
    return undone;
}

/* Undo the last names of each directory; from where on is drawn. */
static int64_t undo_names(int64_t mode)
{
    uint64_t durable[DURABLE_MAX];
    int64_t undone = 0;
    int count = 0;
    for (int64_t i = undo_count - 1; i >= 0; i--) {
        const struct undo *undo = undos[i];
        uint64_t directory = key_of(undo);
        int kept_name = undo->kind == UNDO_WRITE || undo->kind == UNDO_SIZE;
        for (int k = 0; k < count && !kept_name; k++)
            kept_name = durable[k] == directory;
        if (kept_name)
            continue;
        if (mode != 1 && cut_draw() % 3 == 0 && count < DURABLE_MAX) {
            durable[count++] = directory; /* this name, and the earlier ones of its directory, are durable */
            continue;
        }
        undo_name(undo);
        undone++;
    }
    return undone;
}

/* Undo changes that no sync covers, and return how many. `mode` says which: 0 any, 1 all of them, 2 only names, 3 only
   data. */
int64_t disk_cut(uint64_t seed, int64_t mode)
{
    int64_t undone = 0;
    cut_state = seed;
    kept_count = 0;
    nftw(shared->root, keep, 16, FTW_PHYS);
    nftw(shared->graveyard, keep, 16, FTW_PHYS);
    collect();
    if (mode != 2)
        undone += undo_data(mode); /* first, because the files still have the names under which they were found */
    if (mode != 3)
        undone += undo_names(mode);
    shared->undo_bytes = shared->undo_count = 0;
    return undone;
}

void disk_reset(void)
{
    shared->undo_bytes = shared->undo_count = shared->graves = 0;
}
