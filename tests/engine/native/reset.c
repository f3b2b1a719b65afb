/* Puts the memory of a process back to what it was, which costs a third of what a new process does.

   `reset_begin` keeps a copy of all private memory, and lets the kernel note which pages are written from then on. At
   the end of a run, `reset_memory` copies these pages back, unmaps what was mapped since, closes what was opened since,
   and returns from `reset_begin` once more. The memory that the processes of a world share is left alone.

   The first write to a page costs a fault in the kernel, and most runs write to the same pages. Those that several of the
   first runs have written are hot: they are left without protection from then on, and copied back after each run,
   written or not. Which ones are hot is found out anew at times.

   Threads of a run use kernel threads that were parked before `reset_begin`, so none has to be created or ended. What
   cannot be put back (an old mapping is gone, a thread was created) ends the process, and the parent forks another one.
   It needs Linux 6.7, for write protection that does not wait; elsewhere `reset_begin` says no. */
#define _GNU_SOURCE
#include "world.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum {
    AREAS_MAX = 2048, REGIONS_MAX = 1 << 14, OWN_FDS = 400, TEXT_BYTES = 1 << 20, STACK_BYTES = 1 << 16,
    PAGES_MAX = 1 << 20, SPARE_PAGES = 1 << 12, PAGE = 4096, COLD = -1, LEARNED = 20, HOT = 8, RUNS_OF_HEAT = 2000,
    WATCHED = 1, WRITTEN = 2, PRESENT = 8, SWAPPED = 16, /* categories of pages */
    PROTECT = 1                                          /* a flag of `scan` */
};
static const uint64_t ASYNCHRONOUS = 1 << 15;
static const uintptr_t USER_END = (uintptr_t)1 << 63; /* [vsyscall] lies above it */

struct pages {
    uint64_t start, end, categories;
};

struct scan {
    uint64_t size, flags, start, end, walked, pages, count, most, inverted, all, any, wanted;
};

/* `struct procmap_query` of Linux 6.11, which older headers lack. */
struct query {
    uint64_t size, flags, address, start, end, rights, page_bytes, offset, inode;
    uint32_t device[2], name_bytes, build_bytes;
    uint64_t name, build;
};
enum { OR_NEXT = 16, READABLE = 1, WRITABLE = 2, EXECUTABLE = 4, SHARED = 8 };

struct area {
    uintptr_t start, end;
    int rights, private, stack, file;
    int64_t first;              /* of its pages, in `kept` */
};

/* What must survive a reset: it is shared memory, which is not put back. */
struct store {
    struct area areas[AREAS_MAX], now[AREAS_MAX];
    struct pages regions[REGIONS_MAX];
    char text[TEXT_BYTES];
    char stack[STACK_BYTES];
    unsigned char open[OWN_FDS];
    int area_count, user_fault, page_map, maps, returns, ready, checked;
    int64_t differs;
    uintptr_t heap_end;
    void *left;                 /* the stack inside `reset_begin` */
    int64_t page_count;
    int32_t *kept;              /* by page: its place in `copies`, or COLD if it was never touched */
    unsigned char *heat;        /* by page: how many of the runs that are learned from have written it */
    char *copies;
};

static struct store *store;

#ifdef __x86_64__
/* Without errno, which lies in memory that is put back. */
static long call(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#else
static long call(long number, long a, long b, long c, long d, long e, long f)
{
    return syscall(number, a, b, c, d, e, f);
}
#endif

static uintptr_t number(const char **at, int base)
{
    uintptr_t value = 0;
    for (;; (*at)++) {
        char c = **at;
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
        if (digit >= base)
            return value;
        value = value * (uintptr_t)base + (uintptr_t)digit;
    }
}

/* Ask for each area that is mapped, which is ten times as fast as their text, without what only the text tells. Return
   how many there are, or -1 before Linux 6.11. */
static int ask_areas(struct area *areas)
{
    struct query query = {.size = sizeof(query), .flags = OR_NEXT};
    int count = 0;
    while (call(SYS_ioctl, store->maps, (long)_IOWR('f', 17, struct query), (long)&query, 0, 0, 0) == 0) {
        if (count == AREAS_MAX - 1)
            return -1;
        areas[count++] = (struct area){
            .start = query.start, .end = query.end, .private = !(query.rights & SHARED),
            .rights = (query.rights & READABLE ? PROT_READ : 0) | (query.rights & WRITABLE ? PROT_WRITE : 0) |
                      (query.rights & EXECUTABLE ? PROT_EXEC : 0)
        };
        query = (struct query){.size = sizeof(query), .flags = OR_NEXT, .address = query.end};
    }
    return count ? count : -1;
}

/* Read what is mapped. Return how many areas there are, or -1. */
static int read_areas(struct area *areas)
{
    long size = 0, n;
    int count = 0;
    while (size < TEXT_BYTES - 1 && (n = call(SYS_pread64, store->maps, (long)store->text + size, TEXT_BYTES - 1 - size, size, 0, 0)) > 0)
        size += n;
    store->text[size] = 0;
    for (const char *at = store->text; *at; at++) {
        struct area *area = &areas[count];
        if (count == AREAS_MAX - 1)
            return -1;
        area->start = number(&at, 16);
        at++;
        area->end = number(&at, 16);
        at++;
        area->rights = (at[0] == 'r' ? PROT_READ : 0) | (at[1] == 'w' ? PROT_WRITE : 0) | (at[2] == 'x' ? PROT_EXEC : 0);
        area->private = at[3] == 'p';
        area->stack = area->file = 0;
        for (int words = 0; words < 3 && *at && *at != '\n'; at++) /* the rights, the offset, the device: then the file's number */
            words += *at == ' ';
        area->file = *at != '0' && *at != '\n';
        for (; *at && *at != '\n'; at++)
            if (at[0] == '[' && (at[1] == 's' || at[1] == 'v')) /* [stack], [vdso], [vvar], [vsyscall] */
                area->stack = 1;
        count += area->start < USER_END;
        if (!*at)
            break;
    }
    return count;
}

static int is_kept(const struct area *area)
{
    return area->private && (area->rights & PROT_WRITE);
}

/* Return how many regions of an area have pages of the wanted kind, which are write-protected with `flags` PROTECT. */
static long scan(const struct area *area, uint64_t all, uint64_t flags)
{
    struct scan given = {
        .size = sizeof(given), .flags = flags, .start = area->start, .end = area->end, .pages = (uint64_t)store->regions,
        .count = REGIONS_MAX, .all = all, .any = PRESENT | SWAPPED, .wanted = WRITTEN | PRESENT
    };
    return call(SYS_ioctl, store->page_map, (long)_IOWR('f', 16, struct scan), (long)&given, 0, 0, 0);
}

static int protect_all(void)
{
    for (int i = 0; i < store->area_count; i++)
        if (is_kept(&store->areas[i]) && scan(&store->areas[i], WRITTEN, PROTECT) < 0)
            return 0;
    return 1;
}

static int64_t kept_pages(void)
{
    int64_t pages = 0;
    for (int i = 0; i < store->area_count; i++)
        if (is_kept(&store->areas[i])) {
            store->areas[i].first = pages;
            pages += (int64_t)(store->areas[i].end - store->areas[i].start) / PAGE;
        }
    return pages;
}

static int watch(const struct area *area)
{
    struct uffdio_register asked = {
        .range = {area->start, area->end - area->start}, .mode = UFFDIO_REGISTER_MODE_WP
    };
    for (uintptr_t at = area->start; area->file && at < area->end; at += PAGE)
        (void)*(volatile char *)at; /* so that only pages of zeros are left out of the copies */
    return ioctl(store->user_fault, UFFDIO_REGISTER, &asked) == 0;
}

/* Copy every page that was ever touched, on a stack of our own. */
static void copy_all(void)
{
    int64_t copied = 0;
    for (int64_t i = 0; i < store->page_count; i++)
        store->kept[i] = COLD;
    for (int i = 0; i < store->area_count; i++) {
        struct area *area = &store->areas[i];
        long count = is_kept(area) ? scan(area, 0, 0) : 0;
        if (count < 0 || count == REGIONS_MAX)
            turns_resume(store->left);
        for (long k = 0; k < count; k++)
            for (uintptr_t at = store->regions[k].start; at < store->regions[k].end; at += PAGE) {
                store->kept[area->first + (int64_t)(at - area->start) / PAGE] = (int32_t)copied;
                memcpy(store->copies + copied++ * PAGE, (void *)at, PAGE);
            }
    }
    store->ready = protect_all();
    turns_resume(store->left);
}

/* Unmap what was mapped since, and return whether all that was mapped before is still there. */
static int unmap_new(void)
{
    int count, old = 0;
    call(SYS_brk, (long)store->heap_end, 0, 0, 0, 0, 0);
    count = ask_areas(store->now);
    if (count < 0)
        count = read_areas(store->now);
    if (count < 0)
        return 0;
    for (int i = 0; i < count; i++) {
        const struct area *now = &store->now[i];
        uintptr_t at = now->start;
        while (at < now->end) {
            const struct area *was;
            while (old < store->area_count && store->areas[old].end <= at)
                old++;
            was = &store->areas[old];
            if (old < store->area_count && was->start <= at) {
                if (was->rights != now->rights || was->private != now->private)
                    return 0;
                at = was->end < now->end ? was->end : now->end;
            } else {
                uintptr_t end = old < store->area_count && was->start < now->end ? was->start : now->end;
                int grown = old < store->area_count && was->stack && was->start == end;
                if (!now->stack && !grown)
                    call(SYS_munmap, (long)at, (long)(end - at), 0, 0, 0, 0);
                at = end;
            }
        }
    }
    /* Every byte that was mapped before must be there: compare the sizes of what both have in common. */
    old = 0;
    for (int i = 0; i < store->area_count; i++) {
        uintptr_t at = store->areas[i].start;
        while (old < count && store->now[old].end <= at)
            old++;
        for (int k = old; at < store->areas[i].end; k++) {
            if (k == count || store->now[k].start > at)
                return 0;
            at = store->now[k].end;
        }
    }
    return 1;
}

static void close_new(void)
{
    for (int fd = 0; fd < OWN_FDS;) {
        int first = fd;
        while (fd < OWN_FDS && !store->open[fd])
            fd++;
        if (fd > first)
            call(SYS_close_range, first, fd - 1, 0, 0, 0, 0);
        while (fd < OWN_FDS && store->open[fd])
            fd++;
    }
}

/* Put a page back, and return whether it shall stay without protection. */
static int put_page_back(uintptr_t at, int64_t page)
{
    if (store->kept[page] == COLD)
        memset((void *)at, 0, PAGE);
    else
        memcpy((void *)at, store->copies + (int64_t)store->kept[page] * PAGE, PAGE);
    if (store->returns % RUNS_OF_HEAT >= LEARNED)
        return store->heat[page] >= HOT;
    store->heat[page]++;
    return 0;
}

/* Put a region of written pages back, and protect those that are not hot. */
static int put_region_back(const struct area *area, uintptr_t at, uintptr_t end)
{
    struct area cold = *area;
    for (cold.start = at; at < end; at += PAGE) {
        if (!put_page_back(at, area->first + (int64_t)(at - area->start) / PAGE))
            continue;
        cold.end = at;
        if (cold.start < cold.end && scan(&cold, WRITTEN, PROTECT) < 0)
            return 0;
        cold.start = at + PAGE;
    }
    cold.end = end;
    return cold.start == end || scan(&cold, WRITTEN, PROTECT) >= 0;
}

static int put_back(void)
{
    struct area all = {.start = store->areas[0].start, .end = store->areas[store->area_count - 1].end};
    const struct area *area = store->areas;
    long count = scan(&all, WATCHED | WRITTEN, 0);
    if (count < 0 || count == REGIONS_MAX)
        return 0;
    for (long k = 0; k < count; k++) {
        uintptr_t at = store->regions[k].start, end = store->regions[k].end;
        while (at < end) {
            uintptr_t until;
            while (area->end <= at)
                area++;
            until = area->end < end ? area->end : end;
            if (area->start > at) /* the stack has grown */
                until = area->start < end ? area->start : end;
            else if (is_kept(area) && !put_region_back(area, at, until))
                return 0;
            at = until;
        }
    }
    if ((store->returns + 1) % RUNS_OF_HEAT)
        return 1;
    memset(store->heat, 0, (size_t)store->page_count);
    return protect_all();
}

/* Return how many pages differ from their copies. */
static int64_t differing(void)
{
    int64_t found = 0;
    for (int i = 0; i < store->area_count; i++)
        for (uintptr_t at = store->areas[i].start; is_kept(&store->areas[i]) && at < store->areas[i].end; at += PAGE) {
            int32_t place = store->kept[store->areas[i].first + (int64_t)(at - store->areas[i].start) / PAGE];
            if (place != COLD)
                found += memcmp((void *)at, store->copies + (int64_t)place * PAGE, PAGE) != 0;
        }
    return found;
}

static void go_back(void)
{
    if (turns_created() || !unmap_new() || (close_new(), !put_back()))
        for (;;)
            call(SYS_exit_group, shared->status, 0, 0, 0, 0, 0);
    if (store->checked)
        store->differs = differing();
    store->returns++;
    turns_resume(store->left);
}

static int high(int fd)
{
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, OWN_FDS);
    if (fd >= 0)
        close(fd);
    return moved;
}

static void *shared_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static int prepare(void)
{
    struct uffdio_api api = {.api = UFFD_API, .features = ASYNCHRONOUS};
    store = shared_memory(sizeof(*store));
    if (!store || !turns_park_spares())
        return 0;
    store->user_fault = high((int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
    store->page_map = high(open("/proc/self/pagemap", O_RDONLY));
    store->maps = high(open("/proc/self/maps", O_RDONLY));
    if (store->user_fault < 0 || store->page_map < 0 || store->maps < 0 || ioctl(store->user_fault, UFFDIO_API, &api) != 0)
        return 0;
    for (int fd = 0; fd < OWN_FDS; fd++)
        store->open[fd] = fcntl(fd, F_GETFD) != -1;
    store->area_count = read_areas(store->areas);
    store->page_count = store->area_count < 0 ? PAGES_MAX : kept_pages() + SPARE_PAGES;
    if (store->page_count >= PAGES_MAX)
        return 0; /* the shadow memory of a sanitizer */
    store->kept = shared_memory((size_t)store->page_count * sizeof(int32_t));
    store->copies = shared_memory((size_t)store->page_count * PAGE);
    store->heat = shared_memory((size_t)store->page_count);
    if (!store->kept || !store->copies || !store->heat)
        return 0;
    store->heap_end = (uintptr_t)sbrk(0);
    store->area_count = read_areas(store->areas);
    if (store->area_count < 0 || kept_pages() > store->page_count)
        return 0;
    for (int i = 0; i < store->area_count; i++)
        if (is_kept(&store->areas[i]) && !watch(&store->areas[i]))
            return 0;
    return 1;
}

/* Remember the memory of this process, outside the world and without other threads. Return how often it was put back
   since, or -1 if that is not possible here. */
int reset_begin(void)
{
    if (!prepare())
        return -1;
    turns_call(store->stack + STACK_BYTES, copy_all, &store->left);
    return store->ready ? store->returns : -1;
}

/* End a run of this process with a status: put its memory back and return from `reset_begin`, or exit. */
void reset_end(int status)
{
    void *nowhere;
    shared->status = status;
    if (store && store->ready)
        turns_call(store->stack + STACK_BYTES, go_back, &nowhere);
    _exit(status);
}

/* Compare all memory with its copies at the next resets, and return how many pages differed at the last one. */
int64_t reset_differs(void)
{
    store->checked = 1;
    return store->differs;
}
