"""Responses from memory: slices of the write cache and of the read cache, newest copy first."""
from libc.stdint cimport INT64_MAX

from bookie._fast.base.planted cimport PLANT_FLUSH_UNREAD, bk_planted
from bookie._fast.base.sync cimport bk_add, bk_add_relaxed, bk_load, pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.base.types cimport (
    END,
    ENTRY_ID_LAST,
    NO_ENTRY,
    NO_LEDGER,
    OK,
    PENDING,
    UNKNOWN_STATE,
)
from bookie._fast.cache.pages cimport page_offset, page_take
from bookie._fast.cache.runs cimport Found, LedgerRuns, map_find, run_take, runs_find
from bookie._fast.cache.uncached cimport PRIVATE, uncached_free
from bookie._fast.store.kept_list cimport KEPT_MOST
from bookie._fast.store.ledger_table cimport Ledger, ledger_doubtful, ledger_find
from bookie._fast.store.stores cimport Shard, Store, shard_of, store_of
from bookie._fast.wire.request cimport PIGGYBACK

cdef enum:
    LAYERS = 3 + KEPT_MOST       # at most
    AHEAD_SHARE = 8          # read on once reads have gone through one in this many entries of a page


cdef void region_unpin(Region* region) noexcept nogil:
    if bk_add(&region.pins, -1) == 0 and region.size == PRIVATE:
        uncached_free(region)


cdef void answer_release(Answer* answer) noexcept nogil:
    cdef uint32_t i
    for i in range(answer.slices):
        region_unpin(answer.regions[i])
    answer.slices = 0


cdef bint answer_keeps_half(const Answer* answer) noexcept nogil:
    cdef const Region* region
    cdef uint32_t i
    for i in range(answer.slices):
        region = answer.regions[i]
        if region.of_write_cache and bk_load(&region.wanted):
            return True
    return False


cdef void answer_begin(Answer* answer, const ReadRequest* request) noexcept nogil:
    answer.status = OK
    answer.next = request.entry
    answer.count = 0
    answer.bytes = 0
    answer.slices = 0
    answer.ahead = -1
    answer.doubted = False
    answer.has_lac = False
    answer.from_disk = False


cdef bint answer_complete(const ReadRequest* request, const Answer* answer) noexcept nogil:
    if answer.count >= request.count or answer.slices == SLICES_MOST:
        return True
    return answer.count > 0 and answer.bytes + RECORD_LEAST > request.bytes


cdef uint32_t fit(const ReadRequest* request, const Answer* answer, const Run* run, uint32_t slot,
                  int64_t upper) noexcept nogil:
    """Return how many entries from `slot` on are wanted and fit the limit of bytes."""
    cdef uint64_t used = answer.bytes + <uint64_t> answer.count * request.per_entry
    cdef uint64_t left = request.bytes - used if request.bytes > used else 0
    cdef uint32_t start = page_offset(run.page, slot)
    cdef bint first_free = answer.count == 0
    cdef uint32_t most = run_take(run, slot, answer.next, upper, request.count - answer.count, left, first_free)
    cdef uint32_t n = most
    cdef uint64_t extra = <uint64_t> most * request.per_entry
    if extra == 0 or page_offset(run.page, slot + most) - start + extra <= left:
        return most
    # `per_entry` reduces the number: begin with one that is certainly small enough, then go up.
    n = run_take(run, slot, answer.next, upper, most, left - extra if left > extra else 0, first_free)
    while n < most and page_offset(run.page, slot + n + 1) - start + <uint64_t> (n + 1) * request.per_entry <= left:
        n += 1
    return n


cdef uint32_t answer_take(const ReadRequest* request, Answer* answer, const Run* run, uint32_t slot,
                          int64_t upper) noexcept nogil:
    cdef uint32_t n = fit(request, answer, run, slot, upper)
    cdef uint32_t start, end
    if n == 0:
        return 0
    start = page_offset(run.page, slot)
    end = page_offset(run.page, slot + n)
    bk_add(&run.page.region.pins, 1)
    answer.parts[answer.slices].base = run.page.data + start
    answer.parts[answer.slices].size = end - start
    answer.regions[answer.slices] = run.page.region
    answer.slices += 1
    answer.bytes += end - start
    answer.count += n
    answer.next += n
    page_take(run.page, slot, n)
    if run.page.follow >= 0 and run.page.taken_to - run.page.taken_from > run.page.slots // AHEAD_SHARE:
        answer.ahead = run.page.follow
        run.page.follow = -1
    return n


cdef Status resolve_last(Ledger* ledger, Answer* answer) noexcept nogil:
    """Turn ENTRY_ID_LAST into an id; PENDING if only the index knows it."""
    if not ledger.last_known:
        return PENDING
    if ledger.last < 0:
        return NO_ENTRY
    answer.next = ledger.last
    return OK


cdef void tell_lac(const ReadRequest* request, const Ledger* ledger, Answer* answer) noexcept nogil:
    """Set the LAC of the response. END: it is below the wanted entry, which is the whole response."""
    if ledger_doubtful(ledger):
        if request.flags & PIGGYBACK:
            answer.status = UNKNOWN_STATE
        return
    if not ledger.lac_known:
        answer.status = PENDING
        return
    answer.lac = ledger.lac
    answer.has_lac = True
    if request.flags & PIGGYBACK and ledger.lac < request.entry:
        answer.status = END
        if ledger.lac < 0 and ledger.last_known and ledger.last < 0 and ledger.explicit_lac == NULL:
            answer.status = NO_ENTRY
            answer.has_lac = False


cdef inline LedgerRuns* layer(Shard* shard, int64_t active, uint32_t i, int64_t ledger) noexcept nogil:
    """Return the ledger's runs in one of the caches, from the newest on."""
    if i == 0:
        return map_find(&shard.halves[active], ledger)
    if i == 1:
        return NULL if bk_planted(PLANT_FLUSH_UNREAD) else map_find(&shard.halves[active ^ 1], ledger)
    if i - 2 < shard.kept.count:
        return map_find(&shard.kept.maps[i - 2], ledger)
    return map_find(&shard.cached, ledger)


cdef void answer_from_memory(Storage* stores, const ReadRequest* request, Answer* answer) noexcept nogil:
    cdef Store* store = store_of(stores, request.ledger)
    cdef Shard* shard = shard_of(store, request.ledger)
    cdef LedgerRuns* layers[LAYERS]
    cdef Ledger* ledger
    cdef Found found
    cdef int64_t upper
    cdef int64_t half
    cdef uint32_t i = 0
    cdef uint32_t known = 0      # layers that were looked up: most entries are in one of the first
    cdef uint32_t last, taken
    pthread_mutex_lock(&shard.lock)
    ledger = ledger_find(&shard.ledgers, request.ledger)
    if ledger == NULL:
        answer.status = NO_LEDGER
    elif request.wants_lac:
        tell_lac(request, ledger, answer)
    if answer.status == OK and answer.next == ENTRY_ID_LAST:
        answer.status = UNKNOWN_STATE if ledger_doubtful(ledger) else resolve_last(ledger, answer)
    if answer.status == OK:
        half = bk_load(&store.active)
        last = 2 + shard.kept.count
        while answer.status == OK and not answer_complete(request, answer):
            # The newest layer that holds the entry wins, up to the next entry of a newer layer.
            upper = INT64_MAX
            for i in range(last + 1):
                if i == known:
                    layers[i] = layer(shard, half, i, request.ledger)
                    known += 1
                runs_find(layers[i], answer.next, &found)
                if found.run != NULL:
                    break
                if found.next_first < upper:
                    upper = found.next_first
            if found.run == NULL:
                if ledger.last_known and answer.next > ledger.last and not ledger_doubtful(ledger):
                    answer.status = NO_ENTRY
                else:
                    answer.status = PENDING
                    answer.doubted |= ledger_doubtful(ledger)
                break
            taken = answer_take(request, answer, found.run, found.slot, upper)
            if i < last:
                bk_add_relaxed(&store.stats.write_cache_hits, taken)
            else:
                bk_add_relaxed(&store.stats.read_cache_hits, taken)
            if taken == 0:
                break
    pthread_mutex_unlock(&shard.lock)
    if answer.status == NO_ENTRY and answer.count:
        answer.status = OK
    elif answer.status == NO_ENTRY and request.flags & PIGGYBACK and answer.has_lac:
        answer.status = END
