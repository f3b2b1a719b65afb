"""The state of an I/O loop.

Its thread owns all of it; others reach it only by its inbox, its hand-over and its waker.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.addresses cimport Address
from bookie._fast.complaints cimport Complaints
from bookie._fast.connection cimport Conn
from bookie._fast.limits cimport NetLimits
from bookie._fast.policy cimport PolicyInbox, PolicyQueue
from bookie._fast.long_polls cimport Polls
from bookie._fast.read_path cimport Inbox, ReadPool, ReadRequest
from bookie._fast.stores cimport STORES_MOST, Stores
from bookie._fast.sync cimport pthread_mutex_t
from bookie._fast.waker cimport Waker

cdef enum:
    INPUT_BYTES = 1 << 18
    CODES = 20
    HANDED_MOST = 1024

cdef struct Ack:
    # An answer that waits for a journal group.
    int64_t group
    Conn* conn
    int64_t ledger
    int64_t entry
    uint64_t request_id
    ReadRequest* read        # a fencing read: served after the sync. NULL: everything else
    uint8_t protocol
    uint8_t op
    uint8_t version

cdef struct AckQueue:
    Ack* ring
    uint64_t head
    uint64_t tail
    uint64_t room            # power of two

cdef struct Handed:
    int fd
    Address* address

cdef struct LoopStats:
    int64_t adds
    int64_t reads
    int64_t batch_reads
    int64_t fences
    int64_t auths
    int64_t refused_unauthenticated
    int64_t policy_answers
    int64_t read_entries     # answered, single and batched
    int64_t bytes_in
    int64_t bytes_out
    int64_t accepted
    int64_t refused          # connections: too many of them
    int64_t refused_address  # too many of one address
    int64_t refused_by_connection  # requests: too many of one connection have no answer yet
    int64_t refused_adds     # too many of the loop
    int64_t held_back        # times that a connection was not read for that
    int64_t closed_unauthenticated
    int64_t closed_idle
    int64_t closed_by_limit  # budget of input or output exceeded
    int64_t broken_frames
    int64_t stalls           # an add had to wait for room
    int64_t inline_commits
    int64_t errors[CODES]    # by Status

cdef struct IoLoop:
    int epoll
    Waker waker
    int listener             # -1: others accept for this loop
    int spare_fd             # given up for a moment when descriptors run out
    Stores* stores
    ReadPool* pool
    NetLimits* limits
    Inbox inbox
    PolicyQueue* policy      # NULL: Python answers nothing (tests of rooms)
    PolicyInbox policy_done
    AckQueue acks[STORES_MOST]
    int64_t appended[STORES_MOST]
    uint8_t* input
    Conn* conns
    Conn* dirty
    int64_t stalled          # connections
    int64_t now              # monotonic, of this round
    int64_t late_check       # when to look for connections that outstayed a limit; 0: no connections, or no limit
    Polls polls
    Complaints complaints
    int64_t unpin_seen
    # connections accepted by another loop; guarded by `handed_lock`
    pthread_mutex_t handed_lock
    Handed handed[HANDED_MOST]
    int handed_count
    IoLoop* peers[64]
    int peer_count
    int peer_next
    int64_t stopping         # atomic; 1: finish what was begun, 2: now
    LoopStats stats
