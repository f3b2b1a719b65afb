"""How far checkpoints lag behind the journals: what a journal knows of it, and what a ledger directory. State only."""
from libc.stdint cimport int64_t

cdef enum:
    JOURNALS_MOST = 64

cdef struct JournalBacklog:
    # Bytes count from the beginning of the file that the lowest mark names, in whole files.
    int64_t hurry_bytes          # constant; with more of them a checkpoint is due before its time
    int64_t most_bytes           # constant; with more of them no adds are taken
    int64_t kept_from            # that file; 0: every file counts. Guarded by `mark_lock` of the journal
    int64_t hurry                # atomic
    int64_t at_limit             # atomic

cdef struct StoreBacklog:
    int64_t marked[JOURNALS_MOST]    # atomic; of each journal the file that this directory's mark names
    int64_t marked_ns            # atomic; when that mark moved last, by the clock that does not jump
    bint late                    # its last checkpoint came to nothing; the flush thread's
    int64_t beyond               # carried over in vain: not again before so much more is held back; the flush thread's
