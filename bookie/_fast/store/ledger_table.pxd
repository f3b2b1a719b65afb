"""What the bookie knows of each ledger besides its entries: key, fence, limbo, LAC. Guarded by the ledger's shard."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.by_ledger cimport ByLedger, Chained
from bookie._fast.base.types cimport Status
from bookie._fast.index.codec cimport QuarantineReason
from bookie._fast.store.ledger_counts cimport LedgerCounts

cdef enum Change:
    # How a ledger differs from the ledgers index.
    UNCHANGED = 0
    CHANGED = 1              # it differs
    PUT = 2                  # its record is in the open transaction
    PUT_CHANGED = 3          # the same, and it has changed since

cdef struct Ledger:
    Chained chained
    uint8_t* key             # owned; `key_own` if it fits
    uint8_t[20] key_own          # keys of the protocol have this size
    uint32_t key_size
    uint8_t* explicit_lac    # owned; the client's packet, or NULL
    uint32_t explicit_lac_size
    bint fenced, limbo
    uint8_t quarantine       # a QuarantineReason: the first one, or NOT_QUARANTINED
    bint lagging             # the journal has entries of it for which there was no room yet: module store.replay
    bint key_logged          # this process's journal holds the key record
    Change change
    bint last_known          # `last` covers the index as well, not only this process's adds
    int64_t last             # highest entry id seen; -1 for none
    int64_t lac              # highest LAC seen; -1 for none
    bint lac_known           # `lac` covers what earlier processes stored as well
    uint64_t watchers        # loops with long polls that wait for the next change; bit i is loop i
    int64_t events           # incremented by what ends every long poll: a fence, an explicit LAC
    int64_t lac_time_ms      # when `watchers` were last told of a rise of `lac`; 0 if it was another change
    int64_t fence_group      # journal group of the fence record; 0 if it is not pending in this process
    bint write_closed        # its writer closed it, or it was fenced: it is in the list `closed`
    Ledger* next_changed
    Ledger* next_closed

cdef struct KeptFence:
    Chained chained
    int64_t since_ms         # when it was kept or last needed, in the time of module store.gc.kept_fences
    bint renewed             # the index has an older one

cdef struct Quarantined:
    Chained chained
    uint32_t reasons         # a bit for each QuarantineReason seen
    uint32_t logged          # those that were logged

cdef struct LedgerMap:
    LedgerCounts* counts
    ByLedger table
    ByLedger fences          # of deleted ledgers
    ByLedger quarantined
    Ledger* changed          # CHANGED ledgers, linked by next_changed
    Ledger* put              # ledgers whose records are being put, linked by next_changed: module store.changed_ledgers
    Ledger* closed           # write-closed ledgers that were not taken yet, linked by next_closed

cdef bint ledgers_init(LedgerMap* map, LedgerCounts* counts) noexcept nogil
# Return whether one more ledger may be added: for its writer, or for a recovery or a fence.
cdef bint ledgers_have_room(const LedgerMap* map, bint is_writer) noexcept nogil
cdef void ledgers_free(LedgerMap* map) noexcept nogil
cdef Ledger* ledger_find(const LedgerMap* map, int64_t id) noexcept nogil
# Add an unknown ledger with this key, fenced if its fence is kept. Return NULL if there is no memory.
cdef Ledger* ledger_add(LedgerMap* map, int64_t id, const uint8_t* key, uint32_t key_size) noexcept nogil
# Keep the fence of a ledger that is deleted, so that it is fenced if it is created again. Return False without memory.
cdef bint ledger_keep_fence(LedgerMap* map, int64_t id, int64_t since_ms) noexcept nogil
cdef KeptFence* ledger_kept_fence(const LedgerMap* map, int64_t id) noexcept nogil
# The same for a client that is answered by the fence, which is kept as long again from fences_now_ms on.
cdef bint ledger_needs_kept_fence(LedgerMap* map, int64_t id) noexcept nogil
cdef int64_t fences_now_ms(const LedgerCounts* counts) noexcept nogil
cdef void ledger_drop_fence(LedgerMap* map, KeptFence* fence) noexcept nogil
# Remove a ledger from the table and the lists `changed` and `closed`, and free it. Nothing else refers to it, and the
# list `put` is empty, because the caller holds Store.writing.
cdef void ledger_remove(LedgerMap* map, Ledger* ledger) noexcept nogil
# Put a ledger into quarantine, durably from the next checkpoint on: its entries stay readable, missing ones are not
# denied, and it takes no writes. Return True if it was not in quarantine for this reason yet.
cdef bint ledger_quarantine(LedgerMap* map, Ledger* ledger, QuarantineReason reason) noexcept nogil
cdef void ledger_end_quarantine(LedgerMap* map, Ledger* ledger) noexcept nogil
cdef bint all_zero(const uint8_t* data, uint32_t size) noexcept nogil

# Return whether a client with this key may change the ledger: OK, UNAUTHORIZED, or BAD_REQUEST for a key that no
# ledger can have (`bounds`). A stored key that is empty or all zeros permits any; nothing is changed. Constant time in
# the keys.
cdef Status ledger_judge_key(const Ledger* ledger, const uint8_t* key, uint32_t key_size) noexcept nogil
# The same, and an empty or all-zero stored key is replaced, once. NO_MEMORY.
cdef Status ledger_check_key(LedgerMap* map, Ledger* ledger, const uint8_t* key, uint32_t key_size) noexcept nogil
# The same for a key of older data, of any size that the index holds. OK, UNAUTHORIZED or NO_MEMORY.
cdef Status ledger_take_key(LedgerMap* map, Ledger* ledger, const uint8_t* key, uint32_t key_size) noexcept nogil
cdef bint ledger_set_key(Ledger* ledger, const uint8_t* key, uint32_t key_size) noexcept nogil
cdef bint ledger_set_lac(Ledger* ledger, const uint8_t* packet, uint32_t size) noexcept nogil
cdef void ledger_mark_changed(LedgerMap* map, Ledger* ledger) noexcept nogil
# Record that no more entries are expected. Return False if that was recorded before.
cdef bint ledger_mark_closed(LedgerMap* map, Ledger* ledger) noexcept nogil
# Take the next ledger off the list `closed`; NULL at its end.
cdef Ledger* ledger_take_closed(LedgerMap* map) noexcept nogil
cdef bint bytes_equal(const uint8_t* a, const uint8_t* b, uint32_t size) noexcept nogil
# Return whether the ledger's contents are uncertain, so that none of its entries may be denied.
cdef inline bint ledger_doubtful(const Ledger* ledger) noexcept nogil:
    return ledger.limbo or ledger.quarantine or ledger.lagging
