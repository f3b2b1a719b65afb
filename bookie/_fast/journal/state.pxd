"""The state of a journal: two groups, the current file, the next one, and what was published.

State only, owned by the JournalCommitter of `commit`; each section says which lock guards it.
"""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from bookie._fast.base.bounds cimport IO_LOOPS_MAX
from bookie._fast.base.file cimport FileOps
from bookie._fast.base.sync cimport pthread_cond_t, pthread_mutex_t
from bookie._fast.base.waker cimport Waker
from bookie._fast.journal.backlog cimport JournalBacklog
from bookie._fast.journal.stats cimport JournalOps, JournalStats

cdef enum:
    WAKERS_MOST = IO_LOOPS_MAX + 16      # those of I/O loops, and of others that write without a socket
    FILES_ROOM = 4096                    # ids of files that there is room for at first
    SPARES_MOST = 8
    DIRECT_BLOCK = 4096
    ZERO_CHUNK = 1 << 20

cdef struct Group:
    uint8_t* base                # aligned to DIRECT_BLOCK
    uint64_t used                # atomic; written under `lock` while the group is open
    int64_t entries
    int64_t writers              # atomic; appenders that are still copying

cdef struct Journal:
    FileOps* ops
    char directory[3072]
    # Settings, constant.
    uint64_t group_capacity
    uint64_t alignment
    uint64_t file_bytes_max
    uint64_t prealloc_bytes
    int64_t group_wait_ns
    uint64_t group_bytes
    int64_t group_entries
    bint flush_when_empty
    bint sync_data
    bint direct
    bint reuse
    int backups_max
    # Guarded by `lock`.
    pthread_mutex_t lock
    pthread_cond_t filled        # the journal thread waits for this
    Group groups[2]
    int64_t active               # atomic
    int64_t open_group           # number of the group being filled, from 1
    int64_t oldest_ns
    pthread_cond_t sync_wanted   # the syncing thread of an unsynced journal waits for this
    int64_t stopping             # atomic
    # Guarded by `commit_lock`.
    pthread_mutex_t commit_lock
    int fd
    bint recycled                # the file was used before: stale bytes may follow the groups
    uint64_t position            # atomic
    Group* unwritten             # a closed group that is not written, as the disk was full; else NULL
    int64_t unwritten_number
    uint64_t unwritten_bytes
    int64_t unwritten_since      # when its first record was appended
    # Published.
    int64_t handed_over          # atomic, set under `lock`: the journal thread shall wait for space for `unwritten`
    int64_t written_group        # atomic; written to the operating system, not synced yet
    int64_t synced_group         # atomic
    int64_t full                 # atomic; a group waits for space on the disk: accept no more adds
    pthread_mutex_t mark_lock    # guards the mark and the list of files
    JournalBacklog backlog
    int64_t file_id
    uint64_t mark_offset
    int64_t* files               # ids on disk, ascending, the current one last
    int64_t retiring             # how many of them, the oldest, no mark needs: they become spares, or are removed
    bint prepared                # a thread runs `journal_prepare`, which retires them
    int64_t file_count
    int64_t file_room
    int64_t spares[SPARES_MOST]  # ids of retired files kept for reuse
    int spare_count
    int spares_wanted            # how many may be kept, by the last trims
    # Preparation of the next file and of zeros ahead, guarded by `prepare_lock`.
    pthread_mutex_t prepare_lock
    pthread_cond_t prepare_wanted
    int64_t zeroed_to            # atomic; of the current file
    int zeros_fd                 # the current file opened again, so that errors of zeros do not hide a group's errors
    int next_fd
    int next_zeros_fd
    bint next_recycled
    int64_t next_zeroed
    Waker* wakers[WAKERS_MOST]
    int waker_count
    JournalStats stats
    JournalOps times
