/* Bugs that tests plant, to prove that other tests would find them. The environment variable BOOKIE_PLANTED has the
   number of one, which is read once, when the extension module is loaded; tests/fixtures/planted.py knows the numbers.

   Only builds with BOOKIE_FAULTS=1 contain them; in all others `bk_planted` is the constant 0. */
#ifndef BOOKIE_PLANTED_H
#define BOOKIE_PLANTED_H
enum {
    PLANT_NOTHING,
    PLANT_SKIP_SYNC, /* every second journal group is acknowledged without a sync */
    PLANT_ACK_EARLY, /* a group is acknowledged before it is written */
    PLANT_MARK_EARLY, /* the mark moves before entry log and index hold all entries below it */
    PLANT_FENCE_IN_MEMORY, /* a fence is acknowledged without a journal record */
    PLANT_NO_ENTRY_ON_EIO, /* a failed read from disk is reported as a missing entry */
    PLANT_ANY_KEY, /* the master key is not compared */
    PLANT_GROUP_UNCHECKED, /* replay accepts groups without checking their checksum */
    PLANT_ACK_AFTER_FAILURE, /* a failed write or sync of the journal is ignored */
    PLANT_UNLINK_EARLY, /* compaction removes a log before the index points at the copy */
    PLANT_GONE_IS_NO_ENTRY, /* a missing entry log is reported as a missing entry */
    PLANT_DELETE_INDEX_ONLY, /* a deleted ledger stays in the caches */
    PLANT_UNFINISHED_RECORDS, /* a group is closed while records are still being copied into it */
    PLANT_FULL_IS_WRITTEN, /* a group for which the disk has no space counts as written */
    PLANT_WAKE_LOST, /* loops that wait for a group are not woken when it is durable */
    PLANT_TRIM_MARKED, /* the journal file that a mark names is retired with those before it */
    PLANT_ZEROS_OVER_GROUPS, /* zeros ahead are written where a group lies already */
    PLANT_REPLAY_AFTER_MARK, /* replay skips the first record at a mark */
    PLANT_FENCE_NOT_REPLAYED, /* replay skips fences */
    PLANT_LAST_NOT_RAISED, /* replay does not raise the last entry of a ledger */
    PLANT_MARK_LATE, /* a mark is taken after the flush that it stands for */
    PLANT_MARK_WHEN_FULL, /* a mark moves although the flush found no space */
    PLANT_LAG_FORGOTTEN, /* a mark moves although the directory lacks entries of the journals */
    PLANT_FAILED_HALF_LOST, /* the half of the write cache whose flush failed is cleared */
    PLANT_FLUSH_UNREAD, /* reads pass over the half of the write cache that is being flushed */
    PLANT_TRIM_BY_NEWEST, /* the journal is trimmed by the newest mark of the directories, not the oldest */
    PLANT_BORN_COMMITTED, /* a flush that fails removes full logs to which the index points */
    PLANT_GIVE_UP_ALL, /* a flush that fails gives up what its log held before, too */
    PLANT_TAIL_DROPPED, /* a log that gets the shared buffer back has lost its unwritten tail */
    PLANT_RELEASED_EARLY, /* a full log may be collected before the index points to its entries */
    PLANT_OPEN_COLLECTED, /* logs are collected that their writers have not closed */
    PLANT_COPY_UNSYNCED, /* the index points to copies of compaction that are not synced */
    PLANT_FENCE_NOT_INDEXED, /* the index stores ledgers without their fence */
    PLANT_FAILED_COMMIT_SETTLED, /* changed ledgers count as stored although the index could not commit */
    PLANT_CHANGE_LOST, /* a ledger that changes while the index stores it counts as stored */
    PLANT_FENCE_IGNORED, /* writers may add to a fenced ledger */
    PLANT_FENCE_RACE, /* the lock is released between the check of a fence and the put of an add */
    PLANT_SECOND_FENCE_EARLY, /* a fence is acknowledged at once if another one is on its way to the disk */
    PLANT_FENCE_ANSWERED_EARLY, /* a fence is acknowledged before its record is on disk */
    PLANT_LAST_AFTER_ERROR, /* a ledger whose last entry cannot be read from the index counts as empty */
    PLANT_BATCH_OVER_GAPS, /* a batch goes on after a missing entry */
    PLANT_HALF_REUSED, /* a flushed half takes entries again while responses refer to it */
    PLANT_SEGMENT_REUSED, /* a segment of the read cache is reused while responses refer to it */
    PLANT_STALE_PAGES, /* runs still refer to the pages of a segment that is reused */
    PLANT_DEAD_PAGE_SHOWN, /* a page that was evicted during its read enters the read cache */
    PLANT_MOVED_ANYWAY, /* compaction points entries to its copies that lie in another log by now */
    PLANT_GAPS_TAKE_SPACE, /* the places of entries behind a gap are wrong when a run is stored in parts */
    PLANT_DELETED_STAYS_NEXT, /* the run before a deleted ledger still names one of its runs as the next */
    PLANT_STALE_LEAF, /* a look-up takes a page of an older commit for the present one */
    PLANT_OLD_META_JUDGED, /* an index is refused for its older meta page */
    PLANT_ACK_NEXT_GROUP, /* adds are acknowledged when the group before theirs is on disk */
    PLANT_INPUT_DROPPED, /* a request that has to wait for room in the write cache is dropped */
    PLANT_SLICE_RESENT, /* after a short write the beginning of a cached entry is sent again */
    PLANT_UNPIN_ONCE, /* responses written after a half is to be cleared keep it until their peer reads them */
    PLANT_SHORT_LEDGER_IDS, /* reads of the second protocol take the low 32 bits of the ledger id */
    PLANT_V3_FENCE_LOST, /* the third protocol's flag for fences is taken for a plain read */
    PLANT_LIMBO_DENIES, /* the bookie denies entries of a ledger of which it may have lost some */
    PLANT_RISE_UNANNOUNCED, /* long polls do not learn that an add has raised the LAC */
    PLANT_FORCE_EARLY, /* a force is acknowledged before what came before it is on disk */
    PLANT_LAC_NOT_REPLAYED, /* replay skips explicit LACs */
    PLANT_KEY_NOT_JOURNALED, /* a key that replaces an empty one is not journaled before the ledger is indexed */
    PLANT_LIMBO_WRITES, /* writers may add to a ledger of which the bookie may have lost entries */
    PLANT_DOUBT_ENDED, /* a look-up asks only afterwards whether entries of the ledger may be missing from the index */
    PLANT_PATIENCE_ENDLESS, /* an add that waits for room in the write cache is never refused */
    PLANT_PENDING_LOST, /* runs that wait for the index are dropped although it could not commit */
    PLANT_PENDING_UNREAD, /* look-ups pass over runs that wait for the index */
    PLANT_PENDING_MARKED, /* a mark moves over entries whose runs wait for the index */
    PLANT_PENDING_STAYS, /* runs of a deleted ledger still wait for the index */
    PLANT_ROOM_WAITS, /* a directory that is flushed gets no further flush until all others are flushed, too */
    PLANT_TRIM_WAITS, /* the flush thread renames and removes journal files, on a disk that may hang */
    PLANT_LOG_SETTLED_EARLY, /* a full log may be collected while runs that point into it wait for the index */
};
#ifdef BOOKIE_FAULTS
#include <stdlib.h>
static int bk_planted_bug;
__attribute__((constructor)) static void bk_plant(void)
{
    const char *bug = getenv("BOOKIE_PLANTED");
    bk_planted_bug = bug ? atoi(bug) : PLANT_NOTHING;
}
#define bk_planted(bug) __builtin_expect(bk_planted_bug == (bug), 0)
#else
#define bk_planted(bug) 0
#endif
#endif
