"""Connections and their output. Everything here belongs to one I/O loop and is touched by its thread only.

Output is a list of items in order; what of it is copied, and the list itself, belong to the budget of output.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.tls cimport Tls
from bookie._fast.base.types cimport Status
from bookie._fast.cache.pages cimport Region
from bookie._fast.server.addresses cimport Address
from bookie._fast.server.limits cimport AuthState, NetLimits, NetUsage
from bookie._fast.server.long_polls cimport PollOwner
from bookie._fast.server.out_item cimport OutItem
from bookie._fast.server.owed_reads cimport OwedReads
from bookie._fast.server.turn cimport Turn
from bookie._fast.server.users cimport Login
from bookie._fast.store.gather cimport Answer, ReadRequest
from bookie._fast.store.lane cimport Lane

cdef enum:
    OUT_LITTLE = 1 << 16     # a connection with no more output than that counts as one with little

cdef struct Conn:
    int fd                   # -1 once closed
    void* loop
    const NetLimits* limits
    NetUsage* usage
    bint v2_only             # a frame was V2: so are all that follow
    int64_t refs             # answers still to come, and 1 while open
    Address* address         # NULL once closed
    int64_t since_ns         # accepted
    int64_t active_ns        # last whole frame or progress of its output
    PollOwner polls          # each holds a reference
    Conn* prev
    Conn* next
    Turn turn
    # input that no complete frame could be made of, or that waits for room
    uint8_t* held
    uint64_t held_size
    uint64_t held_room
    uint64_t early_room      # of it, what is counted in `early_bytes`
    int64_t stalled_until    # 0: not stalled; else the head frame waits for room until then
    bint unaffordable        # the budget of output did not allow what it needed
    bint gone                # its peer hung up
    uint8_t why              # a Reason for its end, beside these two; 0: none
    bint choked              # its output is above the high mark, or the read pool owes it too much
    Lane lane                # of those of its jobs that no thread has
    OwedReads owed           # its jobs of the read pool
    uint32_t armed           # epoll events asked for
    Tls* tls                 # NULL: what goes over the socket is clear
    bint upgrading           # START_TLS is being answered in clear: no further frame is looked at
    uint8_t clear_auth       # ClearAuth (module `server.clear_auth`)
    uint64_t sealed          # encrypted bytes not yet given to the kernel; part of the output budget
    bint gated               # no frame is served until Python has answered the last one
    Login login
    # output
    uint8_t* out
    uint64_t out_used
    uint64_t out_room
    OutItem* items
    uint32_t head
    uint32_t count
    uint32_t items_room
    uint64_t pending         # bytes not yet given to the kernel
    int64_t waiting          # of it and of what the read pool owes, what is counted in `waiting_bytes`
    uint64_t sliced          # of these, in slices
    uint32_t slices          # items that reference cache memory
    uint32_t looked          # items before this one were looked at for regions that are wanted back
    int64_t settled          # Storage.unpin_wanted up to which all items were
    int64_t stuck_ns         # since when the kernel has taken nothing of the output; 0: there is none
    bint dirty
    Conn* next_dirty

cdef Conn* conn_new(int fd, void* loop, const NetLimits* limits, NetUsage* usage) noexcept nogil
cdef void conn_set_auth(Conn* conn, AuthState auth) noexcept nogil   # it may do what it was granted, unless WAITING
# Let go of all input, output and pins, when the socket is closed: answers may still come for a while.
cdef void conn_drop(Conn* conn) noexcept nogil
cdef void conn_free(Conn* conn) noexcept nogil
# Room for `size` bytes at the end of the output, to be filled at once; NULL: over the budget, close the connection.
cdef uint8_t* conn_reserve(Conn* conn, uint64_t size) noexcept nogil
# Whether the output may grow by `size` bytes.
cdef bint conn_affords(const Conn* conn, uint64_t size) noexcept nogil
# Append a slice; takes over one pin of `region`. False: no memory (the pin stays the caller's).
cdef bint conn_slice(Conn* conn, const uint8_t* base, uint64_t size, Region* region) noexcept nogil
cdef void conn_trim(Conn* conn) noexcept nogil       # free an empty output buffer: it will be quiet for a while
# A read of it waits for the disk; it came back.
cdef void conn_awaits(Conn* conn, const ReadRequest* request) noexcept nogil
cdef void conn_awaited(Conn* conn, const ReadRequest* request, const Answer* answer) noexcept nogil
# Bytes that a batch should have at most: what of the budget of output does not wait for other peers.
cdef uint64_t conn_room(const Conn* conn) noexcept nogil
# Whether no more of its requests are served for now; whether they are again. What the read pool owes one is bounded.
cdef bint conn_is_full(const Conn* conn) noexcept nogil
cdef bint conn_goes_on(const Conn* conn) noexcept nogil
# Give the kernel what it takes. OK, PENDING when it is full, CLOSED.
cdef Status conn_flush(Conn* conn) noexcept nogil
# Copy unsent slices whose region is wanted back, of all items or of new ones. False: over the budget, nothing copied.
cdef bint conn_settle(Conn* conn, bint all_items) noexcept nogil
cdef bint conn_shrink(Conn* conn) noexcept nogil     # free what the buffer does not use; whether that was much
cdef bint conn_hold(Conn* conn, const uint8_t* data, uint64_t size) noexcept nogil  # keep input; False: over the budget
cdef bint conn_hold_room(Conn* conn, uint64_t room) noexcept nogil
