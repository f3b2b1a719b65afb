"""How far checkpoints lag behind the journals, as a journal and as a ledger directory see it. State only."""
from libc.stdint cimport int64_t

from bookie._fast.base.bounds cimport DIRECTORIES_MAX

cdef enum:
    JOURNALS_MOST = DIRECTORIES_MAX

cdef struct JournalBacklog:
    # Bytes are counted from the beginning of the file that the lowest mark names; older files count in full.
    int64_t hurry_bytes          # constant; beyond this a checkpoint is due before its time
    int64_t most_bytes           # constant; beyond this no adds are accepted
    int64_t kept_from            # id of the file that the lowest mark names, 0 for all files. Guarded by `mark_lock`
    int64_t hurry                # atomic; beyond `hurry_bytes`
    int64_t at_limit             # atomic; beyond `most_bytes`

cdef struct StoreBacklog:
    int64_t marked[JOURNALS_MOST]    # atomic; for each journal the file that this directory's mark names
    int64_t marked_ns            # atomic; monotonic time at which that mark last moved
    bint late                    # the last checkpoint failed; the flush thread's
    int64_t beyond               # after a fruitless carry-over: none before this much more is held back; same
