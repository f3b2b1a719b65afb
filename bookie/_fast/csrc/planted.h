/* Bugs that tests plant, to prove that other tests would find them. Each is a bit of the environment variable
   BOOKIE_PLANTED, which is read once, when the extension module is loaded.

   Only builds with BOOKIE_FAULTS=1 contain them; in all others `bk_planted` is the constant 0. */
#ifndef BOOKIE_PLANTED_H
#define BOOKIE_PLANTED_H
enum {
    PLANT_SKIP_SYNC = 1,       /* every second journal group is acknowledged without a sync */
    PLANT_ACK_EARLY = 2,       /* a group is acknowledged before it is written */
    PLANT_MARK_EARLY = 4,      /* the mark moves before entry log and index hold all entries below it */
    PLANT_FENCE_IN_MEMORY = 8, /* a fence is acknowledged without a journal record */
    PLANT_NO_ENTRY_ON_EIO = 16, /* a failed read from disk is reported as a missing entry */
    PLANT_ANY_KEY = 32,        /* the master key is not compared */
    PLANT_GROUP_UNCHECKED = 64, /* replay accepts groups without checking their checksum */
    PLANT_ACK_AFTER_FAILURE = 128, /* a failed write or sync of the journal is ignored */
    PLANT_UNLINK_EARLY = 256,  /* compaction removes a log before the index points at the copy */
    PLANT_GONE_IS_NO_ENTRY = 512, /* a missing entry log is reported as a missing entry */
    PLANT_DELETE_INDEX_ONLY = 1024 /* a deleted ledger stays in the caches */
};
#ifdef BOOKIE_FAULTS
#include <stdlib.h>
static long bk_planted_bits;
__attribute__((constructor)) static void bk_plant(void)
{
    const char *bits = getenv("BOOKIE_PLANTED");
    bk_planted_bits = bits ? atol(bits) : 0;
}
#define bk_planted(bug) __builtin_expect((bk_planted_bits & (bug)) != 0, 0)
#else
#define bk_planted(bug) 0
#endif
#endif
