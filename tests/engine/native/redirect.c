/* Points the calls of loaded libraries at our functions, by the entries of their global offset tables.

   The compiled modules of the bookie and LMDB get all replacements, the interpreter those that are marked so. No
   source changes, and a build with sanitizers works as well. */
#define _GNU_SOURCE
#include "world.h"

#include <elf.h>
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>

static const struct replacement *const tables[] = {thread_replacements, disk_replacements, network_replacements};
static int replaced;

static void *ours(const char *name, int interpreter)
{
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        for (const struct replacement *r = tables[i]; r->name; r++)
            if ((r->interpreter || !interpreter) && strcmp(r->name, name) == 0)
                return r->ours;
    return NULL;
}

static void replace(void **place, void *function)
{
    uintptr_t page = (uintptr_t)place & ~(uintptr_t)(sysconf(_SC_PAGESIZE) - 1);
    if (*place == function)
        return;
    mprotect((void *)page, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE);
    *place = function;
    replaced++;
}

static int redirect(struct dl_phdr_info *info, size_t size, void *context)
{
    const ElfW(Dyn) *dynamic = NULL;
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    const ElfW(Rela) *relocations[2] = {NULL, NULL};
    size_t bytes[2] = {0, 0};
    int interpreter = strstr(info->dlpi_name, "libpython") != NULL || info->dlpi_name[0] == 0;
    int engine = strstr(info->dlpi_name, "/bookie/_fast/") != NULL || strstr(info->dlpi_name, "/lmdb/") != NULL;
    int module = strstr(info->dlpi_name, "/lib-dynload/") != NULL;
    (void)size;
    (void)context;
    if (!interpreter && !engine && !module)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++)
        switch (dynamic->d_tag) {
        case DT_SYMTAB:
            symbols = (const ElfW(Sym) *)dynamic->d_un.d_ptr;
            break;
        case DT_STRTAB:
            strings = (const char *)dynamic->d_un.d_ptr;
            break;
        case DT_JMPREL:
            relocations[0] = (const ElfW(Rela) *)dynamic->d_un.d_ptr;
            break;
        case DT_PLTRELSZ:
            bytes[0] = dynamic->d_un.d_val;
            break;
        case DT_RELA:
            relocations[1] = (const ElfW(Rela) *)dynamic->d_un.d_ptr;
            break;
        case DT_RELASZ:
            bytes[1] = dynamic->d_un.d_val;
            break;
        default:
            break;
        }
    for (int k = 0; k < 2 && symbols && strings; k++)
        for (size_t i = 0; relocations[k] && i < bytes[k] / sizeof(ElfW(Rela)); i++) {
            const ElfW(Rela) *r = &relocations[k][i];
            unsigned type = ELF64_R_TYPE(r->r_info);
            void *function;
#ifdef __aarch64__
            if (type != R_AARCH64_JUMP_SLOT && type != R_AARCH64_GLOB_DAT)
#else
            if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
#endif
                continue;
            function = ours(strings + symbols[ELF64_R_SYM(r->r_info)].st_name, !engine);
            if (function)
                replace((void **)(info->dlpi_addr + r->r_offset), function);
        }
    return 0;
}

/* Redirect the libraries that are loaded now, and return how many entries changed: 0 when nothing new was loaded. */
int world_redirect(void)
{
    replaced = 0;
    dl_iterate_phdr(redirect, NULL);
    return replaced;
}

/* Map the memory that the processes of a world share. */
struct shared *world_share(void)
{
    mallopt(M_ARENA_MAX, 1); /* threads would need memory of their own, and get it in an order of their own */
    mallopt(M_TRIM_THRESHOLD, 1 << 30); /* what reset.c has copied must stay mapped */
    mallopt(M_TOP_PAD, 16 << 20); /* a run finds its memory mapped, which is quicker than to map it in each */
    shared = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return shared == MAP_FAILED ? NULL : shared;
}
