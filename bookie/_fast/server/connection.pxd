"""Connections and their output. Each belongs to one I/O loop, and only its thread touches it.

Output is a list of items, sent in order; copied bytes and the list itself count against the budget of output.
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
from bookie._fast.store.read_queue cimport ReadQueue

cdef enum:
    OUT_LITTLE = 1 << 16     # a connection with at most this much output counts as one with little

cdef struct Conn:
    int fd                   # -1 once closed
    void* loop
    const NetLimits* limits
    NetUsage* usage
    bint v2_only             # a frame was V2, so all further ones are
    int64_t refs             # responses that are still to come, plus 1 while it is open
    Address* address         # NULL once closed
    int64_t since_ns         # when it was accepted
    int64_t active_ns        # last whole frame, or progress of its output
    PollOwner polls          # each holds a reference
    Conn* prev
    Conn* next
    Turn turn
    # Input that is not a complete frame, or waits for room.
    uint8_t* held
    uint64_t held_size
    uint64_t held_room
    uint64_t early_room      # the part of held_room that is counted in `early_bytes`
    int64_t held_since       # when the first frame of it began, as seen here; stale if nothing is held
    int64_t stalled_until    # 0 if not stalled; else its first frame waits for room until then
    bint gone                # its peer has disconnected
    uint8_t why              # a Reason for closing it after CLOSED; 0 for none
    bint choked              # its output is above the high mark, or the read pool owes it too much
    ReadQueue* read_queues   # its jobs that no thread has taken, for each directory; NULL until there is one
    OwedReads owed           # its jobs in the read pool
    uint32_t armed           # epoll events that are registered
    Tls* tls                 # NULL for a clear connection
    bint upgrading           # START_TLS is being answered in clear: no further frame is looked at
    uint8_t clear_auth       # ClearAuth (module `server.clear_auth`)
    uint64_t sealed          # encrypted bytes that are not sent; part of the output budget
    bint gated               # no frame is served until Python has answered the last one
    Login login
    # Output.
    uint8_t* out
    uint64_t out_used
    uint64_t out_room
    OutItem* items
    uint32_t head
    uint32_t count
    uint32_t items_room
    uint64_t pending         # unsent bytes
    int64_t waiting          # the part of it, and of what the read pool owes, that is counted in `waiting_bytes`
    uint64_t sliced          # unsent bytes in slices
    uint32_t slices          # items that refer to cache memory
    uint32_t looked          # items before this one were checked for regions that are wanted
    int64_t settled          # Storage.unpin_wanted when all items were last checked
    int64_t stuck_ns         # since when the kernel has accepted no output; 0 if there is none
    bint dirty
    Conn* next_dirty

cdef Conn* conn_new(int fd, void* loop, const NetLimits* limits, NetUsage* usage) noexcept nogil
cdef void conn_set_auth(Conn* conn, AuthState auth) noexcept nogil   # its rights count unless it is WAITING
# Release all input, output and pins of a closed connection. Responses to it may still arrive for a while.
cdef void conn_drop(Conn* conn) noexcept nogil
cdef void conn_release(Conn* conn) noexcept nogil     # drop a reference; the last one frees the connection
# Append `size` bytes to the output, for the caller to fill in. NULL: close the connection, for `why`.
cdef uint8_t* conn_reserve(Conn* conn, uint64_t size) noexcept nogil
# Return whether the output may grow by `size` bytes.
cdef bint conn_affords(const Conn* conn, uint64_t size) noexcept nogil
# Append a slice and take over one pin of `region`. False: no budget or memory; the caller keeps the pin.
cdef bint conn_slice(Conn* conn, const uint8_t* base, uint64_t size, Region* region) noexcept nogil
cdef void conn_trim(Conn* conn) noexcept nogil       # free an empty output buffer, for a quiet connection
# Account for a read that waits for the disk, and for its return.
cdef void conn_awaits(Conn* conn, const ReadRequest* request) noexcept nogil
cdef void conn_awaited(Conn* conn, const ReadRequest* request, const Answer* answer) noexcept nogil
# Return the most bytes that a batch should have: the output budget that is not taken by unsent output of other peers.
cdef uint64_t conn_room(const Conn* conn) noexcept nogil
# Return whether to stop serving its requests for now, and whether to continue. What the read pool owes it is bounded.
cdef bint conn_is_full(const Conn* conn) noexcept nogil
cdef bint conn_goes_on(const Conn* conn) noexcept nogil
# Send as much as the kernel accepts. OK; PENDING if it is full; CLOSED.
cdef Status conn_flush(Conn* conn) noexcept nogil
# Copy unsent slices whose region is wanted, of all items or of new ones. False: over the budget, nothing was copied.
cdef bint conn_settle(Conn* conn, bint all_items) noexcept nogil
cdef bint conn_shrink(Conn* conn) noexcept nogil     # free unused buffer space; return whether it was much
cdef bint conn_hold(Conn* conn, const uint8_t* data, uint64_t size) noexcept nogil  # keep input; False: over budget
cdef bint conn_hold_room(Conn* conn, uint64_t room) noexcept nogil
