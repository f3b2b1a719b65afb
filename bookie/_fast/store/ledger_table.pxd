"""What the bookie knows of each ledger besides its entries: key, fence, limbo, LAC. Guarded by the ledger's shard."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.by_ledger cimport ByLedger, Chained
from bookie._fast.base.types cimport Status
from bookie._fast.index.codec cimport QuarantineReason
from bookie._fast.store.ledger_counts cimport LedgerCounts

cdef enum Change:
    # How a ledger differs from the ledgers index.
    UNCHANGED = 0
    CHANGED = 1              # it does
    PUT = 2                  # its record is in the open transaction
    PUT_CHANGED = 3          # the same, and it changed since

cdef struct Ledger:
    Chained chained
    uint8_t* key             # owned
    uint32_t key_size
    uint8_t* explicit_lac    # owned; the client's packet, or NULL
    uint32_t explicit_lac_size
    bint fenced
    bint limbo
    uint8_t quarantine       # a QuarantineReason: the first one; NOT_QUARANTINED
    bint lagging             # the journal holds entries of it that found no room yet: module store.replay
    bint key_logged          # the journal of this process holds the key record
    Change change
    bint last_known          # `last` covers the index too, not only this process's adds
    int64_t last             # highest entry id seen; -1 none
    int64_t lac              # highest LAC seen; -1 none
    bint lac_known           # `lac` covers what earlier processes stored, too
    uint64_t watchers        # loops whose long polls want to hear of the next change; bit i: loop i
    int64_t events           # bumped by what ends every long poll: fence, explicit LAC
    int64_t lac_time_ms      # when what `watchers` were told last was a rise of `lac`; 0: it was none
    int64_t fence_group      # journal group of the fence record; 0: not pending in this process
    bint write_closed        # its writer said that nothing follows, or it was fenced: it is in the list `closed`
    Ledger* next_changed
    Ledger* next_closed

cdef struct KeptFence:
    Chained chained
    int64_t deleted_ms       # in the time of module store.gc.kept_fences

cdef struct Quarantined:
    Chained chained
    uint32_t reasons         # a bit for each QuarantineReason that was seen
    uint32_t told            # those that the log has told

cdef struct LedgerMap:
    LedgerCounts* counts
    ByLedger table
    ByLedger fences          # of ledgers that were deleted
    ByLedger quarantined
    Ledger* changed          # list through next_changed: CHANGED
    Ledger* put              # list through next_changed, of who puts records: module store.changed_ledgers
    Ledger* closed           # list through next_closed: write-closed since somebody last took them, each once

cdef bint ledgers_init(LedgerMap* map, LedgerCounts* counts) noexcept nogil
# Whether one more may be made: for its writer, or for a recovery or a fence.
cdef bint ledgers_have_room(const LedgerMap* map, bint is_writer) noexcept nogil
cdef void ledgers_free(LedgerMap* map) noexcept nogil
cdef Ledger* ledger_find(const LedgerMap* map, int64_t id) noexcept nogil
# Add an unknown ledger with this key, fenced if its fence is kept; NULL without memory.
cdef Ledger* ledger_add(LedgerMap* map, int64_t id, const uint8_t* key, uint32_t key_size) noexcept nogil
# A ledger that is deleted was fenced: should it come back, it is fenced from the start. False without memory.
cdef bint ledger_keep_fence(LedgerMap* map, int64_t id, int64_t deleted_ms) noexcept nogil
cdef KeptFence* ledger_kept_fence(const LedgerMap* map, int64_t id) noexcept nogil
cdef void ledger_drop_fence(LedgerMap* map, KeptFence* fence) noexcept nogil
# Forget a ledger and free it: off the lists `changed` and `closed` too. Nobody else holds a pointer to it, and the list
# `put` is empty: the caller holds Store.writing.
cdef void ledger_remove(LedgerMap* map, Ledger* ledger) noexcept nogil
# Put a ledger into quarantine, durably from the next checkpoint on. What it has stays readable, what it does not seem
# to have is not denied, and nobody writes to it. True: this reason is new to it.
cdef bint ledger_quarantine(LedgerMap* map, Ledger* ledger, QuarantineReason reason) noexcept nogil
cdef void ledger_end_quarantine(LedgerMap* map, Ledger* ledger) noexcept nogil
cdef bint all_zero(const uint8_t* data, uint32_t size) noexcept nogil

# Whether a client with this key may change the ledger: OK, UNAUTHORIZED, or BAD_REQUEST for a key that no ledger can
# get (`bounds`). A stored key that is empty or all zeros is anybody's; nothing is changed. Constant time in the keys.
cdef Status ledger_judge_key(const Ledger* ledger, const uint8_t* key, uint32_t key_size) noexcept nogil
# The same, and a stored key that is empty or all zeros is replaced, once. NO_MEMORY.
cdef Status ledger_check_key(LedgerMap* map, Ledger* ledger, const uint8_t* key, uint32_t key_size) noexcept nogil
# The same for a key of older data, which may be of any size that the index holds. OK, UNAUTHORIZED, NO_MEMORY.
cdef Status ledger_take_key(LedgerMap* map, Ledger* ledger, const uint8_t* key, uint32_t key_size) noexcept nogil
cdef bint ledger_set_key(Ledger* ledger, const uint8_t* key, uint32_t key_size) noexcept nogil
cdef bint ledger_set_lac(Ledger* ledger, const uint8_t* packet, uint32_t size) noexcept nogil
cdef void ledger_mark_changed(LedgerMap* map, Ledger* ledger) noexcept nogil
# Note that nothing more is expected. False: it was noted before.
cdef bint ledger_mark_closed(LedgerMap* map, Ledger* ledger) noexcept nogil
# The next ledger of the list, off it; NULL: none.
cdef Ledger* ledger_take_closed(LedgerMap* map) noexcept nogil
cdef bint bytes_equal(const uint8_t* a, const uint8_t* b, uint32_t size) noexcept nogil

# Whether it cannot be told for sure what the ledger had: no entry of it may be denied.
cdef inline bint ledger_doubtful(const Ledger* ledger) noexcept nogil:
    return ledger.limbo or ledger.quarantine or ledger.lagging
