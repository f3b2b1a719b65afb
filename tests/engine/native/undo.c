/* What undoes the changes to the simulated disk, and the power cut that undoes those which no sync covers.

   The notes of each process lie in shared memory. The bookie's process writes them; after its death another one calls
   `disk_cut`.

   The model of the file system: the data of a file is durable after a sync of that file, sector by sector in any order
   before that. Names of a directory (creations, renames, removals) become durable in their order, all at the latest
   with a sync of the directory. */
#define _GNU_SOURCE
#include "world.h"

#include <fcntl.h>
#include <ftw.h>

enum { SECTOR = 512, UNDOS_MAX = 1 << 14, COVERS = 1 << 15, DURABLE_MAX = 64, FILES_MAX = 1 << 14 };

struct undo {
    int32_t kind, size;         /* of the data that follows, padded to 8 bytes: old bytes, or a path, or two */
    uint64_t inode;
    int64_t at, before;         /* offset, and the size of the file before */
    int64_t bytes;              /* that a write replaced; they were zeros, or beyond the end, if no data follows */
    int64_t grave;              /* of a removed or replaced file; 0 for none */
};

static struct process *cutting; /* the dead process whose disk loses power; NULL for our own */

static struct process *owner(void)
{
    return cutting ? cutting : mine;
}

static char *notes(void)
{
    return shared->undo[owner() - shared->processes];
}

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
    snprintf(path, sizeof(path), "%s/%lld", owner()->graveyard, (long long)grave);
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
static struct cover *covers_used[COVERS];
static int64_t covers_count;

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
    while (covers_count > 0)
        *covers_used[--covers_count] = (struct cover){0, 0};
    while (at < owner()->undo_bytes) {
        struct undo *undo = (struct undo *)(notes() + at);
        undos[undo_count++] = undo;
        at += (int64_t)sizeof(struct undo) + (undo->size + 7) / 8 * 8;
    }
    for (int64_t i = undo_count - 1; i >= 0; i--) {
        struct cover *cover = cover_of(key_of(undos[i]));
        if (undos[i]->kind == UNDO_SYNC || undos[i]->kind == UNDO_DIRSYNC) {
            if (cover->key == 0)
                covers_used[covers_count++] = cover;
            cover->key = key_of(undos[i]);
            if (undos[i]->at > cover->until)
                cover->until = undos[i]->at;
            undos[i] = NULL;
        } else if (cover->until > (char *)undos[i] - notes()) {
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
            if ((char *)undos[i] - notes() < covered[t])
                moved[t] = end + size;
        memmove(notes() + end, undos[i], (size_t)size);
        end += size;
    }
    memcpy(covered, moved, sizeof(covered));
    owner()->undo_bytes = end;
    owner()->undo_count = undo_count;
}

static struct undo *note(int kind, int64_t data_bytes)
{
    int64_t size = (int64_t)sizeof(struct undo) + (data_bytes + 7) / 8 * 8;
    struct undo *undo;
    if (owner()->undo_bytes + size > UNDO_BYTES || owner()->undo_count >= UNDOS_MAX)
        forget_covered();
    if (owner()->undo_bytes + size > UNDO_BYTES || owner()->undo_count >= UNDOS_MAX)
        finish(OVERFLOWN, "too much is not synced to the simulated disk");
    undo = (struct undo *)(notes() + owner()->undo_bytes);
    owner()->undo_bytes += size;
    owner()->undo_count++;
    *undo = (struct undo){.kind = kind, .size = (int32_t)data_bytes};
    return undo;
}

void note_names(enum undo_kind kind, const char *path, const char *other, int64_t grave)
{
    size_t first = strlen(path) + 1, second = other ? strlen(other) + 1 : 0;
    struct undo *undo = note(kind, (int64_t)(first + second));
    memcpy(undo + 1, path, first);
    if (other)
        memcpy((char *)(undo + 1) + first, other, second);
    undo->grave = grave;
}

/* Keep a file that is about to lose its name, and return the number of its grave; 0 if there is no such file. */
int64_t bury(const char *path)
{
    struct stat state;
    if (lstat(path, &state) != 0 || !S_ISREG(state.st_mode))
        return 0;
    return link(path, grave_path(++owner()->graves)) == 0 ? owner()->graves : 0;
}

static int all_zero(const char *data, int64_t size)
{
    static const char zeros[4096];
    int64_t part;
    for (; size > 0; data += part, size -= part) {
        part = size < (int64_t)sizeof(zeros) ? size : (int64_t)sizeof(zeros);
        if (memcmp(data, zeros, (size_t)part) != 0)
            return 0;
    }
    return 1;
}

/* Note what a write of `size` bytes at an offset of a file replaces. The descriptor permits reads. It is read into the
   notes at once, which are shared memory: what a run writes elsewhere has to be put back after it. */
void note_change(int fd, uint64_t inode, int64_t at, int64_t size)
{
    struct stat state;
    struct undo *undo;
    int64_t held;
    if (size <= 0)
        return;
    fstat(fd, &state);
    held = at >= state.st_size ? 0 : state.st_size - at < size ? state.st_size - at : size;
    if (held > UNDO_BYTES / 4)
        finish(OVERFLOWN, "the disk cannot read what a write replaces");
    undo = note(UNDO_WRITE, held);
    undo->inode = inode;
    undo->at = at;
    undo->before = state.st_size;
    undo->bytes = size;
    if (held > 0 && pread(fd, undo + 1, (size_t)held, at) != held)
        finish(OVERFLOWN, "the disk cannot read what a write replaces");
    if (all_zero((const char *)(undo + 1), held)) {
        owner()->undo_bytes -= (held + 7) / 8 * 8;
        undo->size = 0;
    }
}

void note_growth(uint64_t inode, int64_t before)
{
    struct undo *undo = note(UNDO_SIZE, 0);
    undo->inode = inode;
    undo->before = before;
}

void sync_begins(void)
{
    covered[self->id] = owner()->undo_bytes;
}

void note_sync(enum undo_kind kind, uint64_t inode, const char *path)
{
    struct undo *undo = note(kind, (int64_t)strlen(path) + 1);
    undo->inode = inode;
    undo->at = covered[self->id];
    memcpy(undo + 1, path, strlen(path) + 1);
}

/* --- the power cut, in the parent process ------------------------------------------------------------------------- */

struct kept {
    uint64_t inode;
    char path[300];
};

static struct kept kept[FILES_MAX];
static int kept_count;

static int keep(const char *path, const struct stat *state, int kind, struct FTW *walk)
{
    (void)walk;
    if (kind == FTW_F && kept_count < FILES_MAX) {
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

/* Write back what a sector held before. */
static void restore_sector(int fd, const struct undo *undo, int64_t sector)
{
    char old[SECTOR] = {0};
    int64_t at = sector * SECTOR, size = undo->bytes - at < SECTOR ? undo->bytes - at : SECTOR;
    if (at < undo->size)
        memcpy(old, (const char *)(undo + 1) + at, (size_t)(undo->size - at < size ? undo->size - at : size));
    if (pwrite(fd, old, (size_t)size, undo->at + at) != size)
        abort();
}

static void undo_write(const struct undo *undo, int how)
{
    const char *path = path_of(undo->inode);
    int64_t sectors = (undo->bytes + SECTOR - 1) / SECTOR, one = (int64_t)(cut_draw() % (uint64_t)(sectors ? sectors : 1));
    int fd = path && how != 0 ? open(path, O_RDWR) : -1;
    if (fd < 0)
        return;
    for (int64_t i = 0; i < sectors; i++)
        if (how == 1 || (how == 2 && cut_draw() % 2) || (how == 3 && i == one))
            restore_sector(fd, undo, i);
    if (how == 1 && undo->before < undo->at + undo->bytes && ftruncate(fd, undo->before) != 0)
        abort();
    close(fd);
}

static void lose_directory(const char *path)
{
    static int lost;
    char to[PATH_MAX];
    snprintf(to, sizeof(to), "%s/lost-%d-%d", owner()->graveyard, (int)getpid(), lost++);
    if (rename(path, to) != 0)
        abort();
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
        if (rmdir(path_in(undo)) != 0 && errno == ENOTEMPTY)
            lose_directory(path_in(undo)); /* names in it are durable, but its own is not */
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
int64_t disk_cut(int process, uint64_t seed, int64_t mode)
{
    int64_t undone = 0;
    cutting = &shared->processes[process];
    cut_state = seed;
    kept_count = 0;
    nftw(owner()->root, keep, 16, FTW_PHYS);
    nftw(owner()->graveyard, keep, 16, FTW_PHYS);
    collect();
    if (mode != 2)
        undone += undo_data(mode); /* first, because the files still have the names under which they were found */
    if (mode != 3)
        undone += undo_names(mode);
    cutting->undo_bytes = cutting->undo_count = 0;
    cutting = NULL;
    return undone;
}

/* Forget what undoes the changes to a disk: everything on it is durable. */
void disk_settle(int process)
{
    shared->processes[process].undo_bytes = shared->processes[process].undo_count = 0;
}

/* Give a process an empty disk below `root`; files without a name are kept in `graveyard`. */
void disk_place(int process, const char *root, const char *graveyard)
{
    struct process *p = &shared->processes[process];
    p->undo_bytes = p->undo_count = p->graves = 0;
    snprintf(p->root, sizeof(p->root), "%s", root);
    snprintf(p->graveyard, sizeof(p->graveyard), "%s", graveyard);
}
