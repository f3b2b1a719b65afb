/* The calls that reach a disk: they take simulated time, and fail, stall, tear and find no space as planned.

   The files really exist, on a file system in memory, so that they can be mapped. Before each change to a file or a
   name below the root, undo.c notes what undoes it, and after each sync what it covers. */
#define _GNU_SOURCE
#include "world.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/syscall.h>

enum { PATH_MAX_BYTES = 200, RULES_MAX = 32, SECTOR = 512, PAGE = 4096 };

struct rule {
    int64_t ops, action, nth, times, argument;
    char part[64];              /* that the path contains */
};

struct file {
    int known, durable, append, directory;
    uint64_t inode;
    char path[PATH_MAX_BYTES];
};

static struct rule rules[RULES_MAX];
static int rule_count;
static struct file files[FDS_MAX];
static int files_end;          /* no file is known from this descriptor on */

static int disk_root(const char *path)
{
    size_t size = strlen(mine->root);
    return size && path && strncmp(path, mine->root, size) == 0 && strlen(path) < PATH_MAX_BYTES;
}

static struct file *file_of(int fd)
{
    return fd >= 0 && fd < FDS_MAX && files[fd].known ? &files[fd] : NULL;
}

static const char *short_path(const char *path)
{
    return path + strlen(mine->root);
}

/* --- faults and time ---------------------------------------------------------------------------------------------- */

void disk_rule(int64_t ops, const char *part, int64_t action, int64_t nth, int64_t times, int64_t argument)
{
    struct rule *rule = &rules[rule_count++ % RULES_MAX];
    *rule = (struct rule){ops, action, nth, times, argument, ""};
    snprintf(rule->part, sizeof(rule->part), "%s", part);
}

void disk_inherit(void)
{
    memset(files, 0, sizeof(files[0]) * (size_t)files_end);
    files_end = 0;
}

void disk_no_rules(void)
{
    rule_count = 0;
}

/* Whether a path contains `part`, or ends with it if `part` ends with "$". */
static int matches(const char *path, const char *part)
{
    size_t size = strlen(part), of_path = strlen(path);
    if (size == 0 || part[size - 1] != '$')
        return strstr(path, part) != NULL;
    return of_path >= size - 1 && strncmp(path + of_path - (size - 1), part, size - 1) == 0;
}

static struct rule *due(enum op op, const char *path)
{
    struct rule *found = NULL;
    for (int i = 0; i < rule_count; i++) {
        struct rule *rule = &rules[i];
        if (!(rule->ops >> op & 1) || !matches(path, rule->part))
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
    return shared->now >= mine->settings.full_from && shared->now < mine->settings.full_to;
}

/* Let a call take its time, and decide what becomes of it: an action, or -errno. */
static int judge(enum op op, const char *path, int64_t a, int64_t b, int64_t *argument)
{
    const struct settings *s = &mine->settings;
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
        mine->faults++;
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

/* LMDB takes a short transfer for an error. Linux reads files as a whole; a write may be short on a full disk. */
static int is_index(const struct file *file)
{
    return strstr(file->path, "data.mdb") != NULL;
}

/* Count a lie. It may be found out, so the bookie may give up from here on. */
static void lie(enum lie kind, const struct file *file)
{
    mine->faults++;
    mine->lies[kind == LIE_FILE && strstr(file->path, ".txn") ? LIE_JOURNAL : kind]++;
}

static int fail(int error)
{
    errno = -error;
    return -1;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static void know(int fd, const char *path, int flags)
{
    struct stat state;
    if (fd < 0 || fd >= FDS_MAX)
        return;
    fstat(fd, &state);
    files_end = fd >= files_end ? fd + 1 : files_end;
    files[fd] = (struct file){
        1, (flags & O_DSYNC) == O_DSYNC, (flags & O_APPEND) != 0, S_ISDIR(state.st_mode), state.st_ino, ""
    };
    snprintf(files[fd].path, sizeof(files[fd].path), "%s", path);
}

static void changing(int fd, const struct file *file, int64_t at, int64_t size)
{
    if (!file->durable)
        note_change(fd, file->inode, at, size);
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
    if ((flags & O_ACCMODE) == O_WRONLY)
        flags = (flags & ~O_ACCMODE) | O_RDWR; /* undo.c reads what a write replaces */
    fd = open(path, flags & ~(O_DIRECT | O_TRUNC), mode);
    if (fd < 0)
        return fd;
    know(fd, path, flags);
    if (made)
        note_names(UNDO_CREATE, path, NULL, 0);
    else if (flags & O_TRUNC) {
        struct stat state;
        fstat(fd, &state);
        changing(fd, &files[fd], 0, state.st_size);
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
    if (self && rc >= 0 && rc < FDS_MAX && file_of(from)) {
        files[rc] = files[from];
        files_end = rc >= files_end ? rc + 1 : files_end;
    } else if (self && file_of(rc))
        files[rc].known = 0;
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
    if (verdict == FAULT_SHORT && size > 1 && !is_index(file))
        size = 1 + draw() % (size - 1);
    n = positioned ? pread(fd, data, size, at) : read(fd, data, size);
    if (verdict == FAULT_ROT && n > 0) {
        ((unsigned char *)data)[draw() % (uint64_t)n] ^= (unsigned char)(1u << draw() % 8);
        lie(LIE_READ, file);
    }
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

/* Claim to have written: the file grows, and nothing arrives. */
static ssize_t lose(int fd, const struct file *file, int64_t at, int64_t size)
{
    struct stat state;
    fstat(fd, &state);
    lie(LIE_FILE, file);
    if (at + size > state.st_size) {
        note_growth(file->inode, state.st_size);
        if (ftruncate(fd, at + size) != 0)
            return -1;
    }
    return size;
}

/* Spoil a sector of what was written, or the part of it that was. */
static void spoil(int fd, const struct file *file, int64_t at, int64_t size)
{
    unsigned char sector[SECTOR];
    int64_t skipped = (int64_t)(draw() % (uint64_t)((size + SECTOR - 1) / SECTOR)) * SECTOR;
    int64_t left = size - skipped < SECTOR ? size - skipped : SECTOR;
    ssize_t n = pread(fd, sector, (size_t)left, at + skipped);
    for (ssize_t i = 0; i < n; i++)
        sector[i] ^= (unsigned char)draw();
    if (n > 0 && pwrite(fd, sector, (size_t)n, at + skipped) == n)
        lie(LIE_FILE, file);
}

/* Write `parts` at an offset. A kill in the middle leaves the first bytes. */
static ssize_t writing(int fd, struct file *file, const struct iovec *parts, int count, int64_t at)
{
    struct iovec less[IOV_MAX];
    struct stat state;
    int64_t size = 0, argument = 0, left;
    ssize_t done;
    int verdict, torn, full, shortened, n = 0;
    for (int i = 0; i < count; i++)
        size += (int64_t)parts[i].iov_len;
    verdict = judge(OP_WRITE, short_path(file->path), at, size, &argument);
    if (verdict < 0)
        return fail(verdict);
    full = is_full();
    if (full || verdict == FAULT_ASTRAY)
        fstat(fd, &state);
    if (full && at + size > state.st_blocks * 512)
        return fail(-ENOSPC);
    if (verdict == FAULT_LOST)
        return lose(fd, file, at, size);
    if (verdict == FAULT_ASTRAY) {
        lie(LIE_FILE, file);
        at = (int64_t)(draw() % (uint64_t)(state.st_size / SECTOR + 1)) * SECTOR;
    }
    torn = mine->settings.kill_at == mine->steps + 1;
    shortened = verdict == FAULT_SHORT && !(is_index(file) && size <= PAGE); /* the kernel takes a page as a whole */
    mine->faults += shortened && is_index(file);
    left = (shortened || torn) && size > 1 ? 1 + (int64_t)(draw() % (uint64_t)(size - 1)) : size;
    changing(fd, file, at, left);
    for (n = 0; n < count && left > 0; n++) {
        less[n] = parts[n];
        if ((int64_t)less[n].iov_len > left)
            less[n].iov_len = (size_t)left;
        left -= (int64_t)less[n].iov_len;
    }
    done = pwritev(fd, less, n, at);
    if (verdict == FAULT_ROT && done > 0)
        spoil(fd, file, at, done);
    step(OP_WRITE, at, done, "written");
    return done;
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
    int64_t argument = 0;
    int verdict;
    if (!file)
        return real(fd);
    sync_begins(); /* it promises nothing about what is written while it runs */
    verdict = judge(OP_SYNC, short_path(file->path), 0, 0, &argument);
    if (verdict < 0)
        return fail(verdict);
    if (verdict == FAULT_LOST) {
        if (argument == 0) /* else a planted bug left the sync out, which is no excuse */
            lie(LIE_SYNC, file);
        return 0;
    }
    note_sync(file->directory ? UNDO_DIRSYNC : UNDO_SYNC, file->inode, file->path);
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
    int64_t argument = 0;
    int verdict;
    if (!file)
        return ftruncate(fd, size);
    verdict = judge(OP_TRUNCATE, short_path(file->path), size, 0, &argument);
    if (verdict < 0)
        return fail(verdict);
    fstat(fd, &state);
    if (size < state.st_size)
        changing(fd, file, size, state.st_size - size);
    else
        note_growth(file->inode, state.st_size);
    return ftruncate(fd, size);
}

static int world_fallocate(int fd, int mode, off_t at, off_t size)
{
    struct file *file = self ? file_of(fd) : NULL;
    struct stat state;
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
    if (!(mode & FALLOC_FL_KEEP_SIZE) && at + size > state.st_size)
        note_growth(file->inode, state.st_size);
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
        note_names(UNDO_RENAME, from, to, grave);
    for (int fd = 0; rc == 0 && fd < files_end; fd++)
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
        note_names(UNDO_UNLINK, path, NULL, grave);
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
        note_names(UNDO_MKDIR, path, NULL, 0);
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
        note_names(UNDO_RMDIR, path, NULL, 0);
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
