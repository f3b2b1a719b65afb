"""Pages, runs and the hash from ledger to its runs. Guarded by the ledger's shard; no locks, no I/O here."""
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memmove, memset

from bookie._fast.cursor cimport load_i64, store_u32
from bookie._fast.types cimport LENGTH_PREFIX

cdef enum:
    BUCKETS_FIRST = 16
    RUNS_FIRST = 4


cdef inline uint32_t* slot_at(Page* page, uint32_t slot) noexcept nogil:
    return (<uint32_t*> (page.data + page.capacity)) - 1 - slot


cdef bint page_add_slot(Page* page, uint32_t offset) noexcept nogil:
    """Note a record that already lies at `offset`; False when slots would meet records."""
    if <uint64_t> page.used + 4 * (<uint64_t> page.slots + 1) > page.capacity:
        return False
    slot_at(page, page.slots)[0] = offset
    page.slots += 1
    return True


cdef void page_init(Page* page, Region* region, uint8_t* data, uint32_t capacity, int64_t ledger) noexcept nogil:
    page.region = region
    page.data = data
    page.used = 0
    page.capacity = capacity
    page.slots = 0
    page.ledger = ledger
    page.next = NULL
    page.live = True
    page.follow = -1
    page.taken = 0
    page.taken_from = <uint32_t> -1
    page.taken_to = 0
    page.setting = 0


cdef void page_take(Page* page, uint32_t slot, uint32_t n) noexcept nogil:
    page.taken += n
    if slot < page.taken_from:
        page.taken_from = slot
    if slot + n > page.taken_to:
        page.taken_to = slot + n


cdef bint page_append(Page* page, const uint8_t* entry, uint32_t size) noexcept nogil:
    """Copy one entry behind its length word; False when the page has no room."""
    cdef uint64_t need = <uint64_t> LENGTH_PREFIX + size + 4 * (<uint64_t> page.slots + 1)
    cdef uint8_t* out
    if need > page.capacity - page.used:
        return False
    out = page.data + page.used
    store_u32(out, size)
    memcpy(out + LENGTH_PREFIX, entry, size)
    slot_at(page, page.slots)[0] = page.used
    page.slots += 1
    page.used += LENGTH_PREFIX + size
    return True


cdef inline int64_t slot_entry(const Page* page, uint32_t slot) noexcept nogil:
    return load_i64(page.data + page_offset(page, slot) + LENGTH_PREFIX + 8)


cdef inline uint64_t mix(int64_t ledger) noexcept nogil:
    cdef uint64_t h = <uint64_t> ledger * <uint64_t> 0x9E3779B97F4A7C15
    return h ^ (h >> 29)


cdef bint map_init(RunMap* map) noexcept nogil:
    map.size = BUCKETS_FIRST
    map.count = 0
    map.buckets = <LedgerRuns**> calloc(BUCKETS_FIRST, sizeof(LedgerRuns*))
    return map.buckets != NULL


cdef void map_clear(RunMap* map) noexcept nogil:
    cdef uint32_t i
    cdef LedgerRuns* at
    cdef LedgerRuns* following
    if map.count == 0:
        return
    for i in range(map.size):
        at = map.buckets[i]
        while at != NULL:
            following = at.next
            free(at.runs)
            free(at)
            at = following
    memset(map.buckets, 0, map.size * sizeof(LedgerRuns*))
    map.count = 0


cdef void map_free(RunMap* map) noexcept nogil:
    if map.buckets != NULL:
        map_clear(map)
        free(map.buckets)
        map.buckets = NULL


cdef LedgerRuns* map_find(const RunMap* map, int64_t ledger) noexcept nogil:
    cdef LedgerRuns* at = map.buckets[mix(ledger) & (map.size - 1)]
    while at != NULL and at.ledger != ledger:
        at = at.next
    return at


cdef void map_grow(RunMap* map) noexcept nogil:
    """Double the buckets; without memory the chains just stay longer."""
    cdef uint32_t size = map.size * 2
    cdef uint32_t i
    cdef uint64_t to
    cdef LedgerRuns* at
    cdef LedgerRuns* following
    cdef LedgerRuns** buckets = <LedgerRuns**> calloc(size, sizeof(LedgerRuns*))
    if buckets == NULL:
        return
    for i in range(map.size):
        at = map.buckets[i]
        while at != NULL:
            following = at.next
            to = mix(at.ledger) & (size - 1)
            at.next = buckets[to]
            buckets[to] = at
            at = following
    free(map.buckets)
    map.buckets = buckets
    map.size = size


cdef LedgerRuns* map_get(RunMap* map, int64_t ledger) noexcept nogil:
    """Find or add; NULL without memory."""
    cdef LedgerRuns* at = map_find(map, ledger)
    cdef uint64_t to
    if at != NULL:
        return at
    if map.count >= map.size * 2:
        map_grow(map)
    at = <LedgerRuns*> calloc(1, sizeof(LedgerRuns))
    if at == NULL:
        return NULL
    at.ledger = ledger
    to = mix(ledger) & (map.size - 1)
    at.next = map.buckets[to]
    map.buckets[to] = at
    map.count += 1
    return at


cdef void map_remove(RunMap* map, int64_t ledger) noexcept nogil:
    cdef LedgerRuns** link = &map.buckets[mix(ledger) & (map.size - 1)]
    cdef LedgerRuns* at
    while link[0] != NULL:
        at = link[0]
        if at.ledger == ledger:
            link[0] = at.next
            free(at.runs)
            free(at)
            map.count -= 1
            return
        link = &at.next


cdef int64_t run_at_or_below(const LedgerRuns* ledger, int64_t entry) noexcept nogil:
    """Index of the last run with first <= entry, or -1. The newest is tried first: most look-ups are at the tail."""
    cdef int64_t low = 0
    cdef int64_t high = <int64_t> ledger.count - 1
    cdef int64_t middle
    if high < 0 or ledger.runs[high].first <= entry:
        return high
    while low < high:
        middle = (low + high) // 2
        if ledger.runs[middle].first <= entry:
            low = middle + 1
        else:
            high = middle
    return low - 1


cdef uint32_t slot_at_or_above(const Run* run, int64_t entry) noexcept nogil:
    """First slot of the run whose id is >= entry; lo + n if none. Sparse runs read the ids from their records."""
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


cdef void runs_find(const LedgerRuns* ledger, int64_t entry, Found* found) noexcept nogil:
    cdef int64_t at
    cdef Run* run
    found.run = NULL
    found.slot = 0
    found.next_first = INT64_MAX
    if ledger == NULL or ledger.count == 0:
        return
    at = run_at_or_below(ledger, entry)
    if at + 1 < <int64_t> ledger.count:
        found.next_first = ledger.runs[at + 1].first
    if at < 0:
        return
    run = &ledger.runs[at]
    if entry > run.last:
        return
    found.slot = slot_at_or_above(run, entry)
    if run_dense(run) or slot_entry(run.page, found.slot) == entry:
        found.run = run
    else:
        found.next_first = slot_entry(run.page, found.slot)


cdef bint reserve(LedgerRuns* ledger, uint32_t more) noexcept nogil:
    cdef uint32_t room = ledger.room
    cdef Run* grown
    if ledger.count + more <= room:
        return True
    if room == 0:
        room = RUNS_FIRST
    while room < ledger.count + more:
        room *= 2
    grown = <Run*> realloc(ledger.runs, room * sizeof(Run))
    if grown == NULL:
        return False
    ledger.runs = grown
    ledger.room = room
    return True


cdef void set_view(Run* run, Page* page, uint32_t lo, uint32_t hi) noexcept nogil:
    run.page = page
    run.lo = lo
    run.n = hi - lo
    run.first = slot_entry(page, lo)
    run.last = slot_entry(page, hi - 1)


cdef bint runs_insert(LedgerRuns* ledger, const Run* run) noexcept nogil:
    cdef int64_t begin, end, left_hi, right_lo
    cdef Run pieces[3]
    cdef uint32_t made = 0
    cdef uint32_t removed
    cdef Run* old
    if not reserve(ledger, 2):
        return False
    if ledger.count == 0 or ledger.runs[ledger.count - 1].last < run.first:
        ledger.runs[ledger.count] = run[0]
        ledger.count += 1
        return True
    # [begin, end): the runs that touch the new ids
    begin = run_at_or_below(ledger, run.first)
    if begin < 0 or ledger.runs[begin].last < run.first:
        begin += 1
    end = begin
    while end < <int64_t> ledger.count and ledger.runs[end].first <= run.last:
        end += 1
    if end > begin:
        old = &ledger.runs[begin]
        left_hi = slot_at_or_above(old, run.first)
        if left_hi > old.lo:
            set_view(&pieces[made], old.page, old.lo, <uint32_t> left_hi)
            made += 1
    pieces[made] = run[0]
    made += 1
    if end > begin:
        old = &ledger.runs[end - 1]
        right_lo = slot_at_or_above(old, run.last + 1)
        if right_lo < old.lo + old.n:
            set_view(&pieces[made], old.page, <uint32_t> right_lo, old.lo + old.n)
            made += 1
    removed = <uint32_t> (end - begin)
    memmove(&ledger.runs[begin + made], &ledger.runs[end], (ledger.count - end) * sizeof(Run))
    memcpy(&ledger.runs[begin], pieces, made * sizeof(Run))
    ledger.count = ledger.count - removed + made
    return True


cdef void runs_drop_page(LedgerRuns* ledger, const Page* page) noexcept nogil:
    cdef uint32_t kept = 0
    cdef uint32_t i
    for i in range(ledger.count):
        if ledger.runs[i].page != page:
            if kept != i:
                ledger.runs[kept] = ledger.runs[i]
            kept += 1
    ledger.count = kept


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
        while low < most and slot_entry(run.page, slot + low) == entry + low:
            low += 1
        most = low if most else 0
    if most == 0:
        return 0
    if page_offset(run.page, slot + most) - base <= size:
        return most
    low = 0
    high = most
    while low < high:                      # greatest k with bytes(k) <= size
        middle = (low + high + 1) // 2
        if page_offset(run.page, slot + middle) - base <= size:
            low = middle
        else:
            high = middle - 1
    if low == 0 and first_free:
        return 1
    return low
