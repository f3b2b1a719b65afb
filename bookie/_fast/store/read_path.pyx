"""Cold reads: looked up in the index, read from the entry log, and gathered from memory like all others."""
from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from bookie._fast.base.bounds cimport valid_lac
from bookie._fast.base.cursor cimport load_i64, load_u32
from bookie._fast.base.fatal cimport fatal_is_set
from bookie._fast.base.op_stats cimport op_note_shared
from bookie._fast.base.planted cimport (
    PLANT_DEAD_PAGE_SHOWN,
    PLANT_GONE_IS_NO_ENTRY,
    PLANT_LIMBO_DENIES,
    PLANT_NO_ENTRY_ON_EIO,
    bk_planted,
)
from bookie._fast.base.sync cimport bk_add_relaxed, bk_load, now_ns, pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.base.types cimport (
    CLOSED,
    CORRUPT,
    END,
    ENTRY_HEADER_MIN,
    ENTRY_ID_LAST,
    ENTRY_LAC_MIN,
    IO_ERROR,
    LENGTH_PREFIX,
    NO_ENTRY,
    OK,
    PENDING,
    TOO_MANY_REQUESTS,
    UNKNOWN_STATE,
)
from bookie._fast.cache.pages cimport Page, page_add_slot
from bookie._fast.cache.read cimport ReadRing, ring_page, ring_trim
from bookie._fast.cache.readahead cimport READ_AHEAD_ALWAYS, READ_AHEAD_FORWARD, readahead_limits
from bookie._fast.cache.readers cimport Miss, readers_advance, readers_brought
from bookie._fast.cache.runs cimport Found, LedgerRuns, Run, map_find, map_get, runs_below, runs_find, runs_insert
from bookie._fast.cache.stats cimport note_read
from bookie._fast.cache.uncached cimport PRIVATE, uncached_page
from bookie._fast.entrylog.writer cimport readers_read
from bookie._fast.index.location cimport IndexHit, IndexReader, index_lookup, index_next
from bookie._fast.store.failed_reads cimport failed_reads_note
from bookie._fast.store.gather cimport (
    RECORD_LEAST,
    answer_begin,
    answer_complete,
    answer_from_memory,
    answer_keeps_half,
    answer_release,
    answer_take,
    region_unpin,
)
from bookie._fast.store.last_entry cimport learn_last
from bookie._fast.store.ledger_table cimport Ledger, ledger_doubtful, ledger_find
from bookie._fast.store.loads cimport load_before, load_begin, load_end
from bookie._fast.store.stores cimport Shard, Storage, Store, shard_of, store_of
from bookie._fast.wire.request cimport PIGGYBACK

cdef extern from "<unistd.h>" nogil:
    int usleep(unsigned int) noexcept

cdef enum:
    LAC_AT = 16              # offset in an entry
    LOOK_UPS_MOST = 16       # look-ups for one entry, which may be moved between look-up and read
    GROWTH = 4               # a reader that goes forward gets this many times the entries of the stretch before
    WHOLE = 1 << 29          # assumed previous stretch at a ledger's beginning: allows all that may be read ahead
    HINT_LEAST = 64 << 10    # for fewer bytes the kernel gets no hint to read on
    UNCACHED_WAIT_NS = 1000000000
    UNCACHED_TICK_US = 1000


cdef struct Plan:
    IndexHit hit
    int64_t epoch            # Store.overrides before the look-up
    int64_t last             # the last entry that the read will bring, at least
    uint64_t span            # bytes to read
    uint32_t ahead           # entries of the stretch before, if the reader goes forward; else 0
    uint32_t setting


cdef bint cut(Page* page, const IndexHit* hit, uint64_t size, int64_t* last) noexcept nogil:
    """Add a slot for each record at the front of the page; return False if the first is not the one in the index.

    A record's length is confirmed by the index (the first) or by the record after it; so the last one is left out if
    the bytes after it are not a record.
    """
    cdef uint64_t at = 0
    cdef uint64_t before = 0
    cdef int64_t previous = hit.entry - 1
    cdef uint32_t length
    cdef int64_t found
    last[0] = previous
    page.used = <uint32_t> size          # keeps slots from overlapping bytes that are still to be walked
    while size - at >= RECORD_LEAST:
        length = load_u32(page.data + at)
        if length < ENTRY_HEADER_MIN or length > size - at - LENGTH_PREFIX:
            break
        found = load_i64(page.data + at + LENGTH_PREFIX + 8)
        if load_i64(page.data + at + LENGTH_PREFIX) != page.ledger or found <= last[0]:
            break
        if at == 0 and (found != hit.entry or length != hit.length):
            break
        if not page_add_slot(page, <uint32_t> at):
            break
        before = at
        previous = last[0]
        last[0] = found
        at += LENGTH_PREFIX + length
    if at != size and page.slots > 1:
        page.slots -= 1
        at = before
        last[0] = previous
    page.used = <uint32_t> at
    return page.slots != 0


cdef void extend(IndexReader* reader, int64_t ledger, IndexHit* hit, uint64_t bytes, uint32_t entries) noexcept nogil:
    """Extend the hit over the next stored runs that are contiguous with it, up to the limits of bytes and entries.

    Ids may be missing between two runs: other bookies have the other entries of a striped ledger.
    """
    cdef IndexHit following
    while hit.span_bytes < bytes and hit.span_entries < entries:
        if index_next(reader, ledger, hit.span_last + 1, &following) != OK:
            break
        if following.log_id != hit.log_id or following.offset != hit.offset + hit.span_bytes:
            break
        hit.span_bytes += following.span_bytes
        hit.span_entries += following.span_entries
        hit.span_last = following.span_last


cdef inline uint32_t page_bytes(const IndexHit* hit, uint64_t span) noexcept nogil:
    """Return the capacity for `span` bytes of records, with a slot for each that they may hold."""
    cdef uint64_t slots = span // RECORD_LEAST + 1
    if hit.span_entries < slots:
        slots = hit.span_entries
    return <uint32_t> ((span + 3) // 4 * 4 + 4 * slots)


cdef inline bint passed_through(const Page* page) noexcept nogil:
    """Return whether reads have gone through at least half of the page, by whatever steps."""
    return page.taken_to > page.slots // 2 or page.taken >= page.slots // 2


cdef uint32_t stretch_before(Reading* reading, Shard* shard, const Miss* miss) noexcept nogil:
    """Return how many entries were read before this for a reader that goes forward and has used them, else 0.

    The stretch before must be in the read cache, with at least half of it passed, or under way. It ends right before
    this entry in the entry log, or a short step before it. At a ledger's beginning, return WHOLE.
    """
    cdef uint32_t entries = 0
    cdef uint32_t stretch
    cdef int64_t end = -1
    cdef Run* before
    pthread_mutex_lock(&shard.lock)
    stretch = readers_advance(&shard.readers, miss, &end)
    before = runs_below(map_find(&shard.cached, miss.ledger), miss.entry)
    if before != NULL and before.lo + before.n == before.page.slots and before.page.log_id == miss.log_id:
        if before.page.log_end == miss.offset and (miss.requested == 0 or before.page.taken >= before.page.slots // 2):
            entries = before.page.slots
        elif before.last + 1 == end and passed_through(before.page):
            entries = stretch
    pthread_mutex_unlock(&shard.lock)
    if miss.entry == 0:
        return WHOLE
    if entries == 0:
        entries = <uint32_t> load_before(reading.loads, miss.ledger, miss.entry)
    if entries == 0 and stretch and load_before(reading.loads, miss.ledger, end):
        entries = stretch
    return entries


cdef uint32_t reads_on(Reading* reading, Store* store, const Miss* miss) noexcept nogil:
    """Return how many entries the stretch before this had, by the policy: WHOLE for all that may be read ahead, 0 for
    none.
    """
    if store.ahead.policy == READ_AHEAD_FORWARD:
        return stretch_before(reading, shard_of(store, miss.ledger), miss)
    return WHOLE if store.ahead.policy == READ_AHEAD_ALWAYS else 0


cdef inline uint64_t first_bytes(const IndexHit* hit, uint32_t entries) noexcept nogil:
    """Return the bytes of so many entries from the hit on, exact if all are equal, else estimated plus one entry."""
    cdef uint64_t record = <uint64_t> hit.length + LENGTH_PREFIX
    if entries == 1 or hit.span_bytes == record * hit.span_entries:
        return record * entries
    return hit.span_bytes * entries // hit.span_entries + record


cdef void note_brought(Store* store, int64_t ledger, const IndexHit* hit, int64_t last,
                       uint64_t log_end) noexcept nogil:
    """Tell the table of readers what this disk read is going to bring."""
    cdef Shard* shard = shard_of(store, ledger)
    pthread_mutex_lock(&shard.lock)
    readers_brought(&shard.readers, ledger, hit.entry, last, log_end)
    pthread_mutex_unlock(&shard.lock)


cdef Status plan(Reading* reading, const ReadRequest* request, const Answer* answer, Plan* plan) noexcept nogil:
    """Plan the read for `answer.next`: what was requested, and more of what follows for readers that go forward."""
    cdef Store* store = store_of(reading.stores, request.ledger)
    cdef IndexHit* hit = &plan.hit
    cdef Miss miss
    cdef uint64_t wanted, span, bytes
    cdef uint32_t requested = request.count - answer.count if request.count > answer.count else 0
    cdef uint32_t entries
    cdef int64_t started = now_ns()
    cdef Status status
    plan.epoch = bk_load(&store.overrides)
    status = index_lookup(reading.index, request.ledger, answer.next, hit)
    if status != OK:
        return status
    readahead_limits(&store.ahead, &bytes, &entries, &plan.setting)
    miss.ledger = request.ledger
    miss.entry = answer.next
    miss.log_id = hit.log_id
    miss.offset = hit.offset
    miss.requested = min(requested, entries)
    miss.entries_max = entries
    miss.bytes_max = bytes
    plan.ahead = reads_on(reading, store, &miss)
    wanted = request.bytes - answer.bytes if request.bytes > answer.bytes else 0
    if plan.ahead:
        wanted = max(wanted, bytes)
        entries = max(min(entries, plan.ahead * GROWTH), requested)
    else:
        wanted = max(wanted, <uint64_t> hit.length + LENGTH_PREFIX)
        entries = max(requested, <uint32_t> 1)
    extend(reading.index, request.ledger, hit, wanted, entries)
    op_note_shared(&store.cache.lookups, now_ns() - started)
    plan.last = hit.span_last
    span = hit.span_bytes
    if hit.span_entries > entries:
        # The stored run goes on after what is to be read: read as many bytes as the entries may take.
        span = first_bytes(hit, entries)
        plan.last = min(hit.span_last, hit.entry + entries - 1)
    # The estimate may reach beyond the stored runs, to older copies of entries that were written again elsewhere.
    span = min(span, hit.span_bytes, wanted, store.ring.segment_bytes // 2)
    plan.span = max(span, <uint64_t> hit.length + LENGTH_PREFIX)
    note_brought(store, request.ledger, hit, plan.last, hit.offset + plan.span)
    return OK


cdef Status fault_in(Reading* reading, const ReadRequest* request, Answer* answer) noexcept nogil:
    """Read `answer.next` and what follows it into the read cache, and take it. NO_ENTRY: the index does not have it.

    With `request.count` 0, nothing is taken, and the call never waits for the ring. A log may be removed between
    look-up and read; its entries were indexed elsewhere before, so the look-up is repeated.
    """
    cdef Plan what
    cdef int64_t first = answer.next
    cdef Status status = CLOSED
    cdef int _try
    for _try in range(LOOK_UPS_MOST):
        status = plan(reading, request, answer, &what)
        if status != OK:
            return status
        if not load_begin(reading.loads, request.ledger, first, what.last):
            return OK                    # another thread has just read it
        status = fetch(reading.stores, request, answer, &what)
        load_end(reading.loads, request.ledger, first)
        if status != CLOSED:
            return status
    return IO_ERROR


cdef Page* uncached(Storage* stores, int64_t ledger, Plan* what, uint64_t span) noexcept nogil:
    """Allocate a page outside the ring for `span` bytes, or else for one record."""
    cdef uint64_t record = <uint64_t> what.hit.length + LENGTH_PREFIX
    cdef Page* page = uncached_page(&stores.uncached, ledger, page_bytes(&what.hit, span))
    what.span = span
    what.ahead = 0
    if page == NULL and span > record:
        page = uncached_page(&stores.uncached, ledger, page_bytes(&what.hit, record))
        what.span = record
    return page


cdef Page* page_outside(Storage* stores, const ReadRequest* request, const Answer* answer, Plan* what) noexcept nogil:
    """Allocate a page outside the ring, which cannot take one now, for no more than was requested. If their budget is
    used up, a response that holds none of it waits a little for either; NULL if in vain.
    """
    cdef ReadRing* ring = &store_of(stores, request.ledger).ring
    cdef Plan as_planned = what[0]
    cdef uint64_t span = <uint64_t> what.hit.length + LENGTH_PREFIX
    cdef int64_t deadline = now_ns() + UNCACHED_WAIT_NS
    cdef Page* page
    if request.count - answer.count > 1 and request.bytes > answer.bytes:
        span = max(span, min(what.span, request.bytes - answer.bytes))
    page = uncached(stores, request.ledger, what, span)
    while page == NULL and answer.slices == 0 and now_ns() < deadline and not fatal_is_set():
        usleep(UNCACHED_TICK_US)
        page = ring_page(ring, request.ledger, page_bytes(&as_planned.hit, as_planned.span))
        if page != NULL:
            what[0] = as_planned
        else:
            page = uncached(stores, request.ledger, what, span)
    if page == NULL:
        bk_add_relaxed(&stores.uncached.refused, 1)
    return page


cdef Status fetch(Storage* stores, const ReadRequest* request, Answer* answer, Plan* what) noexcept nogil:
    """Read the planned span into a page. CLOSED: the log in which the index located it does not exist any more."""
    cdef Store* store = store_of(stores, request.ledger)
    cdef Page* page = ring_page(&store.ring, request.ledger, page_bytes(&what.hit, what.span))
    cdef Status status
    cdef Run run
    if page == NULL and request.count:
        page = page_outside(stores, request, answer, what)
    if page == NULL:
        return TOO_MANY_REQUESTS
    page.setting = what.setting
    if not answer.from_disk:
        answer.from_disk = True
        answer.log_id = what.hit.log_id
        answer.position = what.hit.offset
    status = load(store, page, what, &run)
    if status == OK:
        status = publish(store, shard_of(store, request.ledger), request, answer, &run, what)
    region_unpin(page.region)
    return status


cdef Status load(Store* store, Page* page, const Plan* what, Run* run) noexcept nogil:
    """Read the span into the page and cut it into records."""
    cdef const IndexHit* hit = &what.hit
    cdef uint64_t ahead = what.span if what.ahead and what.span >= HINT_LEAST else 0
    cdef size_t got
    cdef int64_t started = now_ns()
    cdef Status status = readers_read(store.logs, hit.log_id, hit.offset, page.data, what.span, &got, ahead)
    bk_add_relaxed(&store.cache.counts.disk_reads, 1)
    op_note_shared(&store.cache.reads, now_ns() - started)
    if status == CLOSED:
        return NO_ENTRY if bk_planted(PLANT_GONE_IS_NO_ENTRY) else CLOSED
    if status != OK:
        return NO_ENTRY if bk_planted(PLANT_NO_ENTRY_ON_EIO) else IO_ERROR
    if not cut(page, hit, got, &run.last):
        bk_add_relaxed(&store.stats.corrupt_records, 1)
        return IO_ERROR
    if page.region.size != PRIVATE:
        ring_trim(&store.ring, page, page.used + 4 * page.slots)
    note_read(&store.cache, page, got)
    page.log_id = hit.log_id
    page.log_end = hit.offset + page.used
    run.first = hit.entry
    run.page = page
    run.lo = 0
    run.n = page.slots
    return OK


cdef int64_t first_unflushed(Shard* shard, int64_t ledger, int64_t entry) noexcept nogil:
    """Return the first id from `entry` on in the write cache, where it is newer than on disk; INT64_MAX if none."""
    cdef int64_t upper = INT64_MAX
    cdef Found found
    cdef int i
    for i in range(2):
        runs_find(map_find(&shard.halves[i], ledger), entry, &found)
        if found.run != NULL:
            return entry
        if found.next_first < upper:
            upper = found.next_first
    return upper


cdef Status publish(Store* store, Shard* shard, const ReadRequest* request, Answer* answer,
                    const Run* run, const Plan* what) noexcept nogil:
    """Insert the run and take what fits of it; neither if it went stale during the read. END: nothing fits."""
    cdef LedgerRuns* runs
    cdef int64_t upper
    cdef uint32_t taken = 0
    cdef Status status = OK
    pthread_mutex_lock(&shard.lock)
    readers_brought(&shard.readers, request.ledger, run.first, run.last, run.page.log_end)
    if bk_load(&store.overrides) == what.epoch:
        runs = map_get(&shard.cached, request.ledger) if run.page.live or bk_planted(PLANT_DEAD_PAGE_SHOWN) else NULL
        if runs != NULL:
            run.page.shown = runs_insert(runs, run)
            if what.ahead and store.ahead.entries_max > 1 and not bk_load(&store.ahead.wasteful):
                run.page.follow = run.last + 1
        upper = first_unflushed(shard, request.ledger, answer.next)
        if upper > answer.next:
            taken = answer_take(request, answer, run, 0, upper)
            status = OK if taken else END
    pthread_mutex_unlock(&shard.lock)
    bk_add_relaxed(&store.stats.read_cache_misses, taken)
    return status


cdef Status last_lac(Reading* reading, int64_t ledger, int64_t entry, int64_t* lac) noexcept nogil:
    """Get the LAC in the ledger's last entry."""
    cdef ReadRequest request
    cdef Answer answer
    cdef Status status
    memset(&request, 0, sizeof(request))
    request.ledger = ledger
    request.entry = entry
    request.count = 1
    answer_from_disk(reading, &request, &answer)
    status = answer.status if answer.status != NO_ENTRY else IO_ERROR
    if status == OK and answer.bytes >= LENGTH_PREFIX + ENTRY_LAC_MIN:
        lac[0] = valid_lac(load_i64(answer.parts[0].base + LENGTH_PREFIX + LAC_AT))
    answer_release(&answer)
    return status


cdef Status learn_lac(Reading* reading, int64_t ledger_id) noexcept nogil:
    cdef Store* store = store_of(reading.stores, ledger_id)
    cdef Shard* shard = shard_of(store, ledger_id)
    cdef Ledger* ledger
    cdef int64_t lac = -1
    cdef int64_t last = -1
    cdef Status status = learn_last(store, reading.index, ledger_id)
    if status != OK:
        return status
    pthread_mutex_lock(&shard.lock)
    ledger = ledger_find(&shard.ledgers, ledger_id)
    if ledger != NULL and not ledger.lac_known:
        last = ledger.last
    pthread_mutex_unlock(&shard.lock)
    if last >= 0:
        status = last_lac(reading, ledger_id, last, &lac)
    pthread_mutex_lock(&shard.lock)
    ledger = ledger_find(&shard.ledgers, ledger_id)
    if ledger != NULL and not ledger.lac_known and status == OK:
        if lac > ledger.lac:
            ledger.lac = lac
        ledger.lac_known = True
    pthread_mutex_unlock(&shard.lock)
    return status


cdef bint doubtful(Storage* stores, int64_t ledger_id) noexcept nogil:
    cdef Shard* shard = shard_of(store_of(stores, ledger_id), ledger_id)
    cdef Ledger* ledger
    cdef bint found
    pthread_mutex_lock(&shard.lock)
    ledger = ledger_find(&shard.ledgers, ledger_id)
    found = ledger != NULL and ledger_doubtful(ledger)
    pthread_mutex_unlock(&shard.lock)
    return found


cdef void conclude(Storage* stores, const ReadRequest* request, Answer* answer, Status status) noexcept nogil:
    """Set the final status: OK if anything was gathered, else the reason why there is nothing.

    A repair puts entries back and then ends limbo and quarantine, perhaps after they were looked for in vain.
    """
    if answer.count:
        answer.status = OK
        if status != NO_ENTRY:
            bk_add_relaxed(&store_of(stores, request.ledger).stats.short_batches, 1)
    elif (status == NO_ENTRY and (answer.doubted or doubtful(stores, request.ledger))
            and not bk_planted(PLANT_LIMBO_DENIES)):
        answer.status = UNKNOWN_STATE
    elif status == NO_ENTRY and request.flags & PIGGYBACK and answer.has_lac:
        answer.status = END
    else:
        answer.status = status


cdef void answer_from_disk(Reading* reading, ReadRequest* request, Answer* answer) noexcept nogil:
    cdef Storage* stores = reading.stores
    cdef Status status = learn_last(store_of(stores, request.ledger), reading.index, request.ledger)
    cdef bint learnt = False
    answer_begin(answer, request)
    while True:
        answer_from_memory(stores, request, answer)
        if answer.status != PENDING:
            return
        if request.wants_lac and not answer.has_lac and not learnt:
            learnt = True
            status = learn_lac(reading, request.ledger)
            if status != OK and not request.flags & PIGGYBACK:
                request.wants_lac = False        # entries without the LAC are better than none
                status = OK
        elif answer.count and answer_keeps_half(answer):
            answer.status = OK                   # send it as it is: the swap must not wait for another read of the disk
            return
        elif answer.next == ENTRY_ID_LAST:
            status = learn_last(store_of(stores, request.ledger), reading.index, request.ledger)
        else:
            status = fault_in(reading, request, answer)
        if status != OK and status != END:
            break
        answer.status = OK
        if status == END or answer_complete(request, answer) or (answer.count and answer.bytes >= request.bytes):
            return
    if status == IO_ERROR or status == CORRUPT:
        failed_reads_note(&store_of(stores, request.ledger).failed_reads, request.ledger, answer.next)
    conclude(stores, request, answer, status)


cdef bint in_memory(Shard* shard, int64_t ledger, int64_t entry) noexcept nogil:
    cdef Found found
    cdef uint32_t i
    pthread_mutex_lock(&shard.lock)
    runs_find(map_find(&shard.cached, ledger), entry, &found)
    for i in range(2):
        if found.run == NULL:
            runs_find(map_find(&shard.halves[i], ledger), entry, &found)
    for i in range(shard.kept.count):
        if found.run == NULL:
            runs_find(map_find(&shard.kept.maps[i], ledger), entry, &found)
    pthread_mutex_unlock(&shard.lock)
    return found.run != NULL


cdef void read_ahead(Reading* reading, int64_t ledger, int64_t entry) noexcept nogil:
    cdef ReadRequest request
    cdef Answer answer
    cdef IndexHit hit
    cdef Store* store = store_of(reading.stores, ledger)
    if index_next(reading.index, ledger, entry, &hit) != OK:
        return
    if in_memory(shard_of(store, ledger), ledger, hit.entry):
        return
    memset(&request, 0, sizeof(request))
    request.ledger = ledger
    request.entry = hit.entry
    answer_begin(&answer, &request)
    fault_in(reading, &request, &answer)
    answer_release(&answer)
