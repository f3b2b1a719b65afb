"""Runs, and the hash table from ledgers to their runs. Guarded by the ledger's shard; no locks, no I/O here."""
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memmove, memset

from bookie._fast.base.by_ledger cimport (
    Chained,
    chained_clear,
    chained_drop,
    chained_find,
    chained_forget,
    chained_free,
    chained_init,
    chained_init_like,
    chained_put,
)
from bookie._fast.base.planted cimport PLANT_BATCH_OVER_GAPS, bk_planted
from bookie._fast.base.slabs cimport Slab, slab_item, slabs_clear, slabs_give_back, slabs_take
from bookie._fast.cache.pages cimport Page, page_offset, slot_entry


cdef bint map_init(RunMap* map) noexcept nogil:
    memset(&map.slabs, 0, sizeof(map.slabs))
    return chained_init(&map.table)


cdef bint map_init_slabs(RunMap* map) noexcept nogil:
    memset(&map.slabs, 0, sizeof(map.slabs))
    map.slabs.item_bytes = sizeof(LedgerRuns)
    return chained_init(&map.table)


cdef bint map_init_like(RunMap* map, const RunMap* other) noexcept nogil:
    memset(&map.slabs, 0, sizeof(map.slabs))
    map.slabs.item_bytes = other.slabs.item_bytes
    return chained_init_like(&map.table, &other.table)


cdef inline void free_chunks(LedgerRuns* ledger) noexcept nogil:
    """Free what a ledger has beside its own struct."""
    cdef uint32_t i
    for i in range(ledger.chunk_count):
        let_go(ledger, ledger.chunks[i].runs)
    if ledger.chunks != &ledger.chunk_own:
        free(ledger.chunks)


cdef void free_runs(Chained* thing) noexcept nogil:
    free_chunks(<LedgerRuns*> thing)
    free(thing)


cdef inline void let_go(const LedgerRuns* ledger, Run* runs) noexcept nogil:
    if runs != ledger.runs_own:
        free(runs)


cdef void map_clear(RunMap* map) noexcept nogil:
    cdef Slab* slab = map.slabs.newest
    cdef LedgerRuns* ledger
    cdef uint32_t i
    if map.slabs.item_bytes == 0:
        chained_clear(&map.table, free_runs)
        return
    while slab != NULL:
        for i in range(slab.taken):
            ledger = <LedgerRuns*> slab_item(&map.slabs, slab, i)
            if ledger.chunk_count:
                free_chunks(ledger)
        slab = slab.older
    slabs_clear(&map.slabs)
    chained_forget(&map.table)


cdef void map_free(RunMap* map) noexcept nogil:
    map_clear(map)
    chained_free(&map.table)


cdef LedgerRuns* map_find(const RunMap* map, int64_t ledger) noexcept nogil:
    return <LedgerRuns*> chained_find(&map.table, ledger)


cdef LedgerRuns* map_get(RunMap* map, int64_t ledger) noexcept nogil:
    """Return the runs of a ledger, adding it if needed; NULL if there is no memory."""
    cdef LedgerRuns* at = map_find(map, ledger)
    if at != NULL:
        return at
    at = <LedgerRuns*> (slabs_take(&map.slabs) if map.slabs.item_bytes else calloc(1, sizeof(LedgerRuns)))
    if at == NULL:
        return NULL
    at.chained.ledger = ledger
    at.chunks = &at.chunk_own
    at.chunk_room = 1
    chained_put(&map.table, &at.chained)
    return at


cdef void map_remove(RunMap* map, int64_t ledger) noexcept nogil:
    cdef LedgerRuns* at = map_find(map, ledger)
    if at == NULL:
        return
    chained_drop(&map.table, &at.chained)
    if map.slabs.item_bytes:
        free_chunks(at)
        slabs_give_back(&map.slabs, at)
    else:
        free_runs(&at.chained)


cdef inline bint found_again(const LedgerRuns* ledger, int64_t entry) noexcept nogil:
    """Return whether the run found by the last look-up holds the entry too, as it does for readers in order."""
    cdef const Chunk* chunk = &ledger.chunks[ledger.found.chunk]
    if ledger.found.chunk >= ledger.chunk_count or ledger.found.at >= chunk.count:
        return False
    return chunk.runs[ledger.found.at].first <= entry <= chunk.runs[ledger.found.at].last


cdef inline int64_t first_at(const int64_t* firsts, size_t stride, uint32_t at) noexcept nogil:
    return (<const int64_t*> (<const uint8_t*> firsts + at * stride))[0]


cdef inline uint32_t last_below(const int64_t* firsts, size_t stride, uint32_t count, int64_t entry) noexcept nogil:
    """Return the index of the last id <= entry among `count` ascending ids, `stride` bytes apart; the first is such.

    The last of them is tried first, as the likeliest.
    """
    cdef uint32_t low = 0
    cdef uint32_t high = count
    cdef uint32_t middle
    if first_at(firsts, stride, high - 1) <= entry:
        return high - 1
    while high - low > 1:
        middle = low + (high - low) // 2
        if first_at(firsts, stride, middle) <= entry:
            low = middle
        else:
            high = middle
    return low


cdef bint place_below(LedgerRuns* ledger, int64_t entry, RunPlace* place) noexcept nogil:
    """Find the last run with first <= entry; False if there is none."""
    cdef Chunk* chunk
    if ledger.chunk_count == 0 or entry < ledger.chunks[0].first:
        return False
    if found_again(ledger, entry):
        place[0] = ledger.found
        return True
    place.chunk = last_below(&ledger.chunks[0].first, sizeof(Chunk), ledger.chunk_count, entry)
    chunk = &ledger.chunks[place.chunk]
    place.at = last_below(&chunk.runs[0].first, sizeof(Run), chunk.count, entry)
    ledger.found = place[0]
    return True


cdef Run* runs_below(LedgerRuns* ledger, int64_t entry) noexcept nogil:
    cdef RunPlace place
    if ledger == NULL or not place_below(ledger, entry, &place):
        return NULL
    return &ledger.chunks[place.chunk].runs[place.at]


cdef uint32_t slot_at_or_above(const Run* run, int64_t entry) noexcept nogil:
    """Return the run's first slot with id >= entry, or lo + n. In sparse runs, ids are read from the records."""
    cdef uint32_t low = run.lo
    cdef uint32_t high = run.lo + run.n
    cdef uint32_t middle
    if entry <= run.first:
        return run.lo
    if entry > run.last:
        return high
    if run_dense(run):
        return run.lo + <uint32_t> (entry - run.first)
    while low < high:
        middle = (low + high) // 2
        if slot_entry(run.page, middle) < entry:
            low = middle + 1
        else:
            high = middle
    return low


cdef void runs_find(LedgerRuns* ledger, int64_t entry, Found* found) noexcept nogil:
    cdef RunPlace place
    cdef Run* run
    cdef Run* following
    found.run = NULL
    found.slot = 0
    found.next_first = INT64_MAX
    if ledger == NULL or ledger.count == 0:
        return
    if not place_below(ledger, entry, &place):
        found.next_first = ledger.chunks[0].first
        return
    run = runs_next(ledger, &place)
    following = runs_next(ledger, &place)
    if following != NULL:
        found.next_first = following.first
    if entry > run.last:
        return
    found.slot = slot_at_or_above(run, entry)
    if run_dense(run) or slot_entry(run.page, found.slot) == entry:
        found.run = run
    else:
        found.next_first = slot_entry(run.page, found.slot)


# --- changes ---

cdef bint room_for_chunk(LedgerRuns* ledger) noexcept nogil:
    """Make room for one more chunk."""
    cdef uint32_t room = ledger.chunk_room * 2
    cdef Chunk* own = &ledger.chunk_own
    cdef Chunk* grown
    if ledger.chunk_count < ledger.chunk_room:
        return True
    grown = <Chunk*> realloc(NULL if ledger.chunks == own else ledger.chunks, room * sizeof(Chunk))
    if grown == NULL:
        return False
    if ledger.chunks == own:
        grown[0] = own[0]
    ledger.chunks = grown
    ledger.chunk_room = room
    return True


cdef bint new_chunk(LedgerRuns* ledger, uint32_t at, uint32_t room) noexcept nogil:
    """Insert an empty chunk before chunk `at`, for the caller to fill. The first of all has room for RUNS_FIRST."""
    cdef Run* runs = ledger.runs_own
    if not room_for_chunk(ledger):
        return False
    if room > RUNS_FIRST:
        runs = <Run*> malloc(room * sizeof(Run))
    if runs == NULL:
        return False
    memmove(&ledger.chunks[at + 1], &ledger.chunks[at], (ledger.chunk_count - at) * sizeof(Chunk))
    ledger.chunks[at].runs = runs
    ledger.chunks[at].room = room
    ledger.chunks[at].count = 0
    ledger.chunk_count += 1
    return True


cdef void forget_chunks(LedgerRuns* ledger, uint32_t begin, uint32_t end) noexcept nogil:
    cdef uint32_t i
    for i in range(begin, end):
        let_go(ledger, ledger.chunks[i].runs)
    memmove(&ledger.chunks[begin], &ledger.chunks[end], (ledger.chunk_count - end) * sizeof(Chunk))
    ledger.chunk_count -= end - begin


cdef bint room_in_chunk(const LedgerRuns* ledger, Chunk* chunk, uint32_t more) noexcept nogil:
    """Make room for `more` runs; CHUNK_RUNS allows them."""
    cdef uint32_t room = chunk.room
    cdef bint own = chunk.runs == ledger.runs_own
    cdef Run* grown
    while room < chunk.count + more:
        room *= 2
    if room == chunk.room:
        return True
    grown = <Run*> realloc(NULL if own else chunk.runs, room * sizeof(Run))
    if grown == NULL:
        return False
    if own:
        memcpy(grown, chunk.runs, chunk.count * sizeof(Run))
    chunk.runs = grown
    chunk.room = room
    return True


cdef bint split(LedgerRuns* ledger, RunPlace* place) noexcept nogil:
    """Move the second half of the chunk at `place` into a new chunk after it; `place` follows its run."""
    cdef uint32_t keep
    cdef Chunk* old
    cdef Chunk* fresh
    if not new_chunk(ledger, place.chunk + 1, CHUNK_RUNS):
        return False
    old = &ledger.chunks[place.chunk]
    fresh = old + 1
    keep = old.count // 2
    fresh.count = old.count - keep
    memcpy(fresh.runs, old.runs + keep, fresh.count * sizeof(Run))
    fresh.first = fresh.runs[0].first
    old.count = keep
    if place.at >= keep:
        place.chunk += 1
        place.at -= keep
    return True


cdef bint append(LedgerRuns* ledger, const Run* run) noexcept nogil:
    """Append a run after all others. Chunks that are filled in order are left full."""
    cdef Chunk* chunk
    if ledger.count == 0 or ledger.chunks[ledger.chunk_count - 1].count == CHUNK_RUNS:
        if not new_chunk(ledger, ledger.chunk_count, RUNS_FIRST if ledger.count == 0 else CHUNK_RUNS):
            return False
        ledger.chunks[ledger.chunk_count - 1].first = run.first
    chunk = &ledger.chunks[ledger.chunk_count - 1]
    if not room_in_chunk(ledger, chunk, 1):
        return False
    chunk.runs[chunk.count] = run[0]
    chunk.count += 1
    ledger.count += 1
    return True


cdef void set_view(Run* run, Page* page, uint32_t lo, uint32_t hi) noexcept nogil:
    run.page = page
    run.lo = lo
    run.n = hi - lo
    run.first = slot_entry(page, lo)
    run.last = slot_entry(page, hi - 1)


cdef Run* touched(LedgerRuns* ledger, const Run* run, RunPlace* end, uint32_t* count) noexcept nogil:
    """Return the last run from `end` on that holds ids of `run`, or NULL. `end` is moved behind it, in its chunk."""
    cdef Run* last = NULL
    cdef Chunk* chunk = &ledger.chunks[end.chunk]
    count[0] = 0
    while True:
        if end.at == chunk.count:
            if end.chunk + 1 == ledger.chunk_count or ledger.chunks[end.chunk + 1].first > run.last:
                return last
            end.chunk += 1
            end.at = 0
            chunk = &ledger.chunks[end.chunk]
        if chunk.runs[end.at].first > run.last:
            return last
        last = &chunk.runs[end.at]
        end.at += 1
        count[0] += 1


cdef void replace(LedgerRuns* ledger, const RunPlace* begin, const RunPlace* end, const Run* pieces,
                  uint32_t made) noexcept nogil:
    """Replace the runs in [begin, end) by these pieces, for which the first chunk has room."""
    cdef Chunk* chunk = &ledger.chunks[begin.chunk]
    cdef Chunk* other
    cdef uint32_t stop = end.at
    if end.chunk != begin.chunk:
        stop = chunk.count
        other = &ledger.chunks[end.chunk]
        other.count -= end.at
        memmove(other.runs, other.runs + end.at, other.count * sizeof(Run))
        if other.count:
            other.first = other.runs[0].first
        forget_chunks(ledger, begin.chunk + 1, end.chunk + (other.count == 0))
        chunk = &ledger.chunks[begin.chunk]
    memmove(&chunk.runs[begin.at + made], &chunk.runs[stop], (chunk.count - stop) * sizeof(Run))
    memcpy(&chunk.runs[begin.at], pieces, made * sizeof(Run))
    chunk.count = chunk.count - (stop - begin.at) + made
    chunk.first = chunk.runs[0].first


cdef uint32_t cut_left(const Chunk* chunk, uint32_t at, const Run* run, Run* piece) noexcept nogil:
    """Make a piece of the part before `run` of the first run that it touches; return the number of pieces, 1 or 0."""
    cdef const Run* old = &chunk.runs[at]
    cdef uint32_t slot = slot_at_or_above(old, run.first)
    if slot <= old.lo:
        return 0
    set_view(piece, old.page, old.lo, slot)
    return 1


cdef bint runs_insert(LedgerRuns* ledger, const Run* run) noexcept nogil:
    cdef RunPlace begin, end
    cdef Run pieces[3]
    cdef uint32_t made = 0
    cdef uint32_t removed, slot
    cdef bint cuts = False
    cdef Run* old = runs_tail(ledger)
    if old == NULL or old.last < run.first:
        return append(ledger, run)
    # [begin, end): the runs that overlap the new one.
    if not place_below(ledger, run.first, &begin):
        begin.chunk = 0
        begin.at = 0
    elif ledger.chunks[begin.chunk].runs[begin.at].last < run.first:
        begin.at += 1
    else:
        cuts = True
    if ledger.chunks[begin.chunk].count + 2 > CHUNK_RUNS and not split(ledger, &begin):
        return False
    if not room_in_chunk(ledger, &ledger.chunks[begin.chunk], 2):
        return False
    end = begin
    old = touched(ledger, run, &end, &removed)
    if old != NULL:
        slot = slot_at_or_above(old, run.last + 1) if run.last < old.last else old.lo + old.n
        if slot < old.lo + old.n:
            set_view(&pieces[2], old.page, slot, old.lo + old.n)
        else:
            old = NULL                   # nothing of it remains on the right
    if cuts:
        made = cut_left(&ledger.chunks[begin.chunk], begin.at, run, pieces)
    pieces[made] = run[0]
    made += 1
    if old != NULL:
        pieces[made] = pieces[2]
        made += 1
    replace(ledger, &begin, &end, pieces, made)
    ledger.count = ledger.count - removed + made
    return True


cdef void join(LedgerRuns* ledger, uint32_t at) noexcept nogil:
    """Join the chunks `at - 1` and `at` if both are small, so that chunks with few runs do not accumulate."""
    cdef Chunk* chunk
    cdef Chunk* following
    if at == 0 or at >= ledger.chunk_count:
        return
    chunk = &ledger.chunks[at - 1]
    following = chunk + 1
    if chunk.count + following.count > CHUNK_RUNS // 2 or not room_in_chunk(ledger, chunk, following.count):
        return
    memcpy(chunk.runs + chunk.count, following.runs, following.count * sizeof(Run))
    chunk.count += following.count
    forget_chunks(ledger, at, at + 1)


cdef void runs_drop_page(LedgerRuns* ledger, const Page* page) noexcept nogil:
    cdef RunPlace place
    cdef Chunk* chunk
    cdef uint32_t kept, i
    cdef int64_t last
    if page.slots == 0 or ledger.count == 0:
        return
    last = slot_entry(page, page.slots - 1)
    if not place_below(ledger, slot_entry(page, 0), &place):
        place.chunk = 0
        place.at = 0
    while place.chunk < ledger.chunk_count and ledger.chunks[place.chunk].first <= last:
        chunk = &ledger.chunks[place.chunk]
        i = place.at
        while i < chunk.count and chunk.runs[i].page != page and chunk.runs[i].first <= last:
            i += 1
        kept = i
        while i < chunk.count and chunk.runs[i].first <= last:
            if chunk.runs[i].page != page:
                chunk.runs[kept] = chunk.runs[i]
                kept += 1
            i += 1
        if kept != i:
            memmove(&chunk.runs[kept], &chunk.runs[i], (chunk.count - i) * sizeof(Run))
            chunk.count -= i - kept
            ledger.count -= i - kept
        if chunk.count == 0:
            forget_chunks(ledger, place.chunk, place.chunk + 1)
        else:
            chunk.first = chunk.runs[0].first
            place.chunk += 1
        place.at = 0
    join(ledger, place.chunk)
    if place.chunk:
        join(ledger, place.chunk - 1)


cdef uint32_t run_take(const Run* run, uint32_t slot, int64_t entry, int64_t upper, uint32_t count, uint64_t size,
                       bint first_free) noexcept nogil:
    cdef uint32_t low, high, middle
    cdef uint32_t base = page_offset(run.page, slot)
    cdef uint32_t most = run.lo + run.n - slot
    if most > count:
        most = count
    if upper - entry < <int64_t> most:
        most = <uint32_t> (upper - entry)
    if not run_dense(run):
        low = 1
        while low < most and (slot_entry(run.page, slot + low) == entry + low or bk_planted(PLANT_BATCH_OVER_GAPS)):
            low += 1
        most = low if most else 0
    if most == 0:
        return 0
    if page_offset(run.page, slot + most) - base <= size:
        return most
    low = 0
    high = most
    while low < high:                      # find the greatest k with bytes(k) <= size
        middle = (low + high + 1) // 2
        if page_offset(run.page, slot + middle) - base <= size:
            low = middle
        else:
            high = middle - 1
    if low == 0 and first_free:
        return 1
    return low
