"""The state of an I/O loop.

Its thread owns all of it; other threads use only its inbox, its hand-over list and its waker.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.bounds cimport IO_LOOPS_MAX
from bookie._fast.base.sync cimport pthread_mutex_t
from bookie._fast.base.tls cimport TlsServer
from bookie._fast.base.waker cimport Waker
from bookie._fast.server.access_log cimport AccessRing
from bookie._fast.server.ack_queue cimport AckQueue
from bookie._fast.server.addresses cimport Address
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.directory_ops cimport DirectoryOps
from bookie._fast.server.limits cimport NetLimits, NetUsage
from bookie._fast.server.long_polls cimport Polls
from bookie._fast.server.loop_ops cimport LoopOps
from bookie._fast.server.policy cimport PolicyInbox, PolicyQueue
from bookie._fast.server.rejections cimport Rejections
from bookie._fast.server.stats cimport BatchStats, LoopStats
from bookie._fast.server.turn cimport Turns
from bookie._fast.store.read_pool cimport Inbox, ReadPool
from bookie._fast.store.stores cimport STORES_MOST, Storage

cdef enum:
    INPUT_BYTES = 1 << 18
    HANDED_MOST = 1024
    SEALED_BYTES = 1 << 17   # received at a time from an encrypted connection
    HANDSHAKE_TICK_MS = 500  # how late an expired handshake may be noticed

cdef struct Handed:
    int fd
    Address* address

cdef struct IoLoop:
    int epoll
    Waker waker
    int listener             # -1 if another loop accepts for this one
    int spare_fd             # closed for a moment when descriptors run out
    int64_t accept_due       # when to accept again after a lack of descriptors or memory; 0: no pause
    Storage* stores
    ReadPool* pool
    const NetLimits* limits
    NetUsage* usage
    Inbox inbox
    PolicyQueue* policy      # NULL: Python answers nothing (tests of modules)
    PolicyInbox policy_done
    AckQueue acks[STORES_MOST]      # waiting for a sync
    AckQueue written[STORES_MOST]   # waiting for a write
    int64_t appended[STORES_MOST]
    # When a request first found no room in a ledger directory, or from STORES_MOST on in a journal; 0: one has found
    # it since. And when the last one found none.
    int64_t full_since[2 * STORES_MOST]
    int64_t full_seen[2 * STORES_MOST]
    int full_count           # how many of `full_since` are not 0
    uint8_t* input
    Conn* conns
    Conn* dirty
    Turns turns
    bint more_acks           # the next round follows at once: published ones are left, or connections wait for these
    int64_t stalled          # number of stalled connections
    int64_t now              # monotonic; beginning of this round
    int64_t revocations_seen
    int64_t late_check       # when to look for connections that exceed a time limit; 0: no connections, or no limit
    Polls polls
    Rejections rejections
    AccessRing* access       # NULL if there is no access log
    int64_t relief_due       # when other loops may be asked again to close slow readers
    int64_t unpin_seen
    int64_t input_asked      # NetUsage.input_asked when last looked at
    # Connections accepted by another loop; guarded by `handed_lock`.
    pthread_mutex_t handed_lock
    Handed handed[HANDED_MOST]
    int64_t handed_count     # atomic
    # Connections that continue encrypted, linked by `next`; guarded by `handed_lock`.
    Conn* moved
    TlsServer* tls           # NULL if this loop serves clear connections
    uint8_t* encrypted       # SEALED_BYTES as received; NULL with `tls`
    int64_t handshaking      # number of connections in a handshake
    int64_t handshakes_checked  # when these were last checked, in ns
    IoLoop* tls_loops[IO_LOOPS_MAX]    # loops to which START_TLS moves connections; it is refused if there are none
    int tls_loop_count, tls_loop_next
    IoLoop* peers[IO_LOOPS_MAX]
    int peer_count, peer_next
    int64_t stopping         # atomic; 1: finish the requests in progress, 2: at once
    LoopStats stats
    BatchStats batches
    LoopOps ops
    DirectoryOps* directories    # one for each store

cdef inline DirectoryOps* directory_of(IoLoop* loop, int64_t ledger) noexcept nogil:
    return &loop.directories[<uint64_t> ledger % loop.stores.count]
