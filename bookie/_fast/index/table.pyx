"""Finding, cutting and storing runs in LMDB. The only memory is the scratch of the RunWriter.

A put first cuts every stored run that it touches down to what remains: an entry that the new run holds is removed from
the old one, an entry whose id is a gap of the new run stays, and the new run is stored in pieces around it. The
records of a piece are contiguous in their log, so a piece never spans an id that another run holds. A run is linked
before it is stored: the run before it is made to name it; the search for that run shares most pages with the following
steps.
"""
from libc.stdint cimport INT64_MAX, UINT32_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memset

from bookie._fast.base.cursor cimport load_i64, store_i64
from bookie._fast.base.lmdb_c cimport (
    MDB_CURRENT,
    MDB_LAST,
    MDB_NOTFOUND,
    MDB_PREV,
    MDB_SET_RANGE,
    MDB_cursor,
    MDB_val,
    mdb,
    mdb_status,
)
from bookie._fast.base.planted cimport PLANT_DELETED_STAYS_NEXT, PLANT_GAPS_TAKE_SPACE, PLANT_MOVED_ANYWAY, bk_planted
from bookie._fast.base.types cimport BAD_REQUEST, CORRUPT, FULL, IO_ERROR, LENGTH_PREFIX, NO_ENTRY, OK, Status
from bookie._fast.index.codec cimport (
    RUN_KEY_BYTES,
    RUN_SLOTS_MAX,
    RUN_VALUE_MAX,
    IndexRun,
    StoredRun,
    key_of,
    run_bytes,
    run_lengths,
    run_pack,
    run_relink,
    run_repack,
    run_unpack,
)
from bookie._fast.index.key cimport RunKey, key_before, key_end, key_equal


cdef struct Place:
    # A value of the table, and where the cursor found it.
    MDB_val key
    MDB_val value
    StoredRun run


cdef Status find(MDB_cursor* cursor, RunKey wanted, bint below, Place* place) noexcept nogil:
    """Find the greatest run at or below `wanted`, or strictly below it, or the head. Its next run is the proof."""
    cdef uint8_t[RUN_KEY_BYTES] key
    cdef Status status
    cdef int error
    store_i64(key, wanted.ledger)
    store_i64(key + 8, wanted.first)
    place.key.mv_size, place.key.mv_data = RUN_KEY_BYTES, key
    error = mdb.cursor_get(cursor, &place.key, &place.value, MDB_SET_RANGE)
    if error and error != MDB_NOTFOUND:
        return IO_ERROR
    if error or below or place.key.mv_size != RUN_KEY_BYTES or memcmp(place.key.mv_data, key, RUN_KEY_BYTES) != 0:
        error = mdb.cursor_get(cursor, &place.key, &place.value, MDB_PREV if error == 0 else MDB_LAST)
    if error:
        return CORRUPT if error == MDB_NOTFOUND else IO_ERROR
    status = run_unpack(place.key.mv_data, place.key.mv_size, place.value.mv_data, place.value.mv_size, &place.run)
    if status != OK:
        return status
    if below and place.run.count and not key_before(key_of(&place.run), wanted):
        return CORRUPT
    return CORRUPT if key_before(place.run.next, wanted) or (not below and key_equal(place.run.next, wanted)) else OK


cdef Status run_seek(MDB_cursor* cursor, int64_t ledger, int64_t entry, StoredRun* run) noexcept nogil:
    cdef Place place
    cdef RunKey next
    cdef Status status = find(cursor, RunKey(ledger, entry), False, &place)
    run[0] = place.run
    if status != OK or (run.count and run.ledger == ledger and run.first + run.count > entry):
        return status
    next = run.next
    if not of_same(next, ledger):
        return NO_ENTRY
    status = find(cursor, next, False, &place)
    run[0] = place.run
    if status == OK and not (run.count and key_equal(key_of(run), next)):
        return CORRUPT
    return status


cdef inline bint of_same(RunKey key, int64_t ledger) noexcept nogil:
    """Return whether the run with this key belongs to `ledger`."""
    return key.ledger == ledger and not key_equal(key, key_end())


cdef bint of_ledger(const MDB_val* key, int64_t ledger) noexcept nogil:
    return key.mv_size == RUN_KEY_BYTES and load_i64(key.mv_data) == ledger


cdef Status run_last(MDB_cursor* cursor, int64_t ledger, StoredRun* run) noexcept nogil:
    cdef Place place
    cdef Status status = find(cursor, RunKey(ledger, INT64_MAX), False, &place)     # no entry has this id
    run[0] = place.run
    if status != OK:
        return status
    return OK if run.count and run.ledger == ledger else NO_ENTRY


# --- the chain ---

cdef Status relink(RunWriter* writer, Place* place, RunKey next) noexcept nogil:
    """Make the run at `place`, where the cursor is, name another one as its next."""
    cdef uint8_t[RUN_VALUE_MAX] value
    cdef MDB_val v
    run_relink(place.key.mv_data, place.key.mv_size, place.value.mv_data, place.value.mv_size, next, value)
    v.mv_size, v.mv_data = place.value.mv_size, value
    return mdb_status(mdb.cursor_put(writer.cursor, &place.key, &v, MDB_CURRENT))


cdef Status unlink(RunWriter* writer, const StoredRun* run) noexcept nogil:
    """Remove a run from the table. Pointers into the table are invalid afterwards."""
    cdef uint8_t[RUN_KEY_BYTES] key
    cdef MDB_val k
    cdef Place before
    cdef RunKey at = key_of(run), next = run.next
    cdef Status status = find(writer.cursor, at, True, &before)
    if status == OK and not key_equal(before.run.next, at):
        return CORRUPT
    if status == OK:
        status = relink(writer, &before, next)
    if status != OK:
        return status
    store_i64(key, at.ledger)
    store_i64(key + 8, at.first)
    k.mv_size, k.mv_data = RUN_KEY_BYTES, key
    return mdb_status(mdb.remove(writer.txn, writer.table, &k, NULL))


cdef Status link(RunWriter* writer, const IndexRun* piece, RunKey* next) noexcept nogil:
    """Make the run before `piece` name it; `next` gets the run after it. `piece` begins and ends in a present slot."""
    cdef Place before
    cdef RunKey first = RunKey(piece.ledger, piece.first)
    cdef Status status = find(writer.cursor, first, True, &before)
    if status != OK:
        return status
    next[0] = before.run.next
    if not key_before(RunKey(piece.ledger, piece.first + piece.count - 1), next[0]):
        return BAD_REQUEST if key_equal(first, next[0]) else CORRUPT
    return relink(writer, &before, first)


# --- puts ---

cdef inline bint is_valid(const IndexRun* run) noexcept nogil:
    if run.count == 0 or run.count > RUN_SLOTS_MAX or run.first < 0 or run.first > INT64_MAX - run.count:
        return False
    return run.lengths[0] != 0 and run.lengths[run.count - 1] != 0


cdef Status run_put_some(RunWriter* writer, const IndexRun* runs, uint32_t count, uint32_t* put) noexcept nogil:
    cdef Place before
    cdef Status status
    put[0] = 1
    if not is_valid(runs):
        return BAD_REQUEST
    status = find(writer.cursor, RunKey(runs.ledger, runs.first), False, &before)
    if status != OK:
        return status
    if is_apart(&before.run, runs):
        while put[0] < count and is_valid(&runs[put[0]]) and is_apart(&before.run, &runs[put[0]]):
            put[0] += 1
        return put_after(writer, &before, runs, put[0])
    memset(writer.new_occupied, 0, runs.count)
    status = make_way(writer, runs)
    return status if status != OK else put_pieces(writer, runs, writer.new_occupied)


cdef inline bint is_apart(const StoredRun* before, const IndexRun* run) noexcept nogil:
    """Return whether `run` touches no stored run, given the one before its first entry."""
    cdef bint follows = not (before.count and before.ledger == run.ledger and before.first + before.count > run.first)
    return follows and key_before(RunKey(run.ledger, run.first + run.count - 1), before.next)


cdef Status put_after(RunWriter* writer, Place* before, const IndexRun* runs, uint32_t count) noexcept nogil:
    """Store runs that touch no other one, as most do, where the search for the run before them ended."""
    cdef IndexRun piece
    cdef RunKey next = before.run.next
    cdef uint32_t i
    cdef Status status = relink(writer, before, RunKey(runs.ledger, runs.first))
    for i in range(count):
        if status != OK:
            break
        piece = runs[i]
        status = run_put_values(writer, &piece, RunKey(piece.ledger, runs[i + 1].first) if i + 1 < count else next)
    return status


cdef Status run_add(RunWriter* writer, const IndexRun* run) noexcept nogil:
    cdef IndexRun piece = run[0]
    if not is_valid(run):
        return BAD_REQUEST
    return put_packed(writer, &piece)


cdef Status make_way(RunWriter* writer, const IndexRun* run) noexcept nogil:
    """Cut every stored run that `run` touches down to what remains; mark the gaps of `run` that are occupied."""
    cdef IndexRun old
    cdef StoredRun stored
    cdef int64_t entry = run.first
    cdef Status status = OK
    while status == OK and entry < run.first + run.count:
        status = run_seek(writer.cursor, run.ledger, entry, &stored)
        if status == NO_ENTRY:
            return OK
        if status != OK or stored.first >= run.first + run.count:
            return status
        run_describe(&stored, writer.old_lengths, &old)
        entry = old.first + old.count
        mark(writer, run, &old)
        status = unlink(writer, &stored)
        if status == OK:
            status = put_pieces(writer, &old, writer.old_replaced)
    return status


cdef void mark(RunWriter* writer, const IndexRun* run, const IndexRun* old) noexcept nogil:
    """Mark for each id of `old` whether `run` replaces it or it stays in a gap of `run`."""
    cdef uint32_t slot
    cdef int64_t at
    for slot in range(old.count):
        at = old.first - run.first + slot
        writer.old_replaced[slot] = 0 <= at < run.count and run.lengths[at] != 0
        if 0 <= at < run.count and old.lengths[slot] and not run.lengths[at]:
            writer.new_occupied[at] = 1


cdef Status put_pieces(RunWriter* writer, const IndexRun* run, const uint8_t* cut) noexcept nogil:
    """Store `run` without the slots marked in `cut`; no piece spans one of those."""
    cdef IndexRun piece = run[0]
    cdef uint32_t slot = 0, end
    cdef Status status = OK
    while slot < run.count and status == OK:
        if cut[slot] or run.lengths[slot] == 0:
            if run.lengths[slot]:
                piece.offset += <uint64_t> run.lengths[slot] + LENGTH_PREFIX
            slot += 1
            continue
        end = slot
        while end < run.count and not cut[end]:
            end += 1
        piece.first = run.first + slot
        piece.lengths = run.lengths + slot
        piece.count = end - slot
        status = put_packed(writer, &piece)
        slot = end
    return status


cdef inline void drop_slots(IndexRun* piece, uint32_t count) noexcept nogil:
    """Make `piece` begin `count` slots later."""
    cdef uint32_t i
    for i in range(count):
        if piece.lengths[i] or bk_planted(PLANT_GAPS_TAKE_SPACE):
            piece.offset += <uint64_t> piece.lengths[i] + LENGTH_PREFIX
    piece.first += count
    piece.lengths += count
    piece.count -= count


cdef Status put_packed(RunWriter* writer, IndexRun* piece) noexcept nogil:
    """Store `piece` in as many values as it takes; it is consumed."""
    cdef RunKey next
    cdef Status status
    while piece.count and piece.lengths[0] == 0:
        drop_slots(piece, 1)
    while piece.count and piece.lengths[piece.count - 1] == 0:
        piece.count -= 1
    if piece.count == 0:
        return OK
    status = link(writer, piece, &next)
    return status if status != OK else run_put_values(writer, piece, next)


cdef Status run_put_values(RunWriter* writer, IndexRun* piece, RunKey next) noexcept nogil:
    cdef uint8_t[RUN_KEY_BYTES] key
    cdef uint8_t[RUN_VALUE_MAX] value
    cdef MDB_val k, v
    cdef size_t size
    cdef uint32_t packed
    cdef Status status
    while piece.count:
        packed = run_pack(piece, next, key, value, &size)
        k.mv_size, k.mv_data = RUN_KEY_BYTES, key
        v.mv_size, v.mv_data = size, value
        status = mdb_status(mdb.cursor_put(writer.cursor, &k, &v, 0))
        if status != OK:
            return status
        drop_slots(piece, packed)
        while piece.count and piece.lengths[0] == 0:
            drop_slots(piece, 1)
    return OK


cdef Status run_delete_ledger(RunWriter* writer, int64_t ledger) noexcept nogil:
    cdef uint32_t most = UINT32_MAX
    return run_delete_some(writer, ledger, &most)


cdef Status run_delete_some(RunWriter* writer, int64_t ledger, uint32_t* most) noexcept nogil:
    """Every value between two keys of the ledger belongs to it, so only its last run has to tell what follows."""
    cdef uint8_t[RUN_KEY_BYTES] first
    cdef MDB_val key, value
    cdef Place before
    cdef StoredRun run
    cdef RunKey next = key_end()
    cdef bint known = False
    cdef Status status = OK, linked
    cdef int error
    store_i64(first, ledger)
    store_i64(first + 8, 0)
    while status == OK:
        key.mv_size, key.mv_data = RUN_KEY_BYTES, first
        error = mdb.cursor_get(writer.cursor, &key, &value, MDB_SET_RANGE)
        if error and error != MDB_NOTFOUND:
            return mdb_status(error)
        if error or not of_ledger(&key, ledger):
            break
        if most[0] == 0:
            next = RunKey(ledger, load_i64(<uint8_t*> key.mv_data + 8))
            known = True
            status = FULL
            break
        known = run_unpack(key.mv_data, key.mv_size, value.mv_data, value.mv_size, &run) == OK and run.count
        if known:
            next = run.next
        error = mdb.cursor_del(writer.cursor, 0)
        if error:
            return mdb_status(error)
        most[0] -= 1
    if not known or (status == OK and of_same(next, ledger)):
        return status
    linked = find(writer.cursor, RunKey(ledger, 0), True, &before)
    if (linked == OK and of_same(before.run.next, ledger) and not key_equal(before.run.next, next)
            and not bk_planted(PLANT_DELETED_STAYS_NEXT)):
        linked = relink(writer, &before, next)
    return status if linked == OK or linked == CORRUPT else linked


cdef Status run_relocate(RunWriter* writer, const Moved* moved, uint64_t* bytes) noexcept nogil:
    cdef uint8_t[RUN_KEY_BYTES] key
    cdef uint8_t[RUN_VALUE_MAX] value
    cdef MDB_val k, v
    cdef StoredRun stored
    cdef int64_t entry = moved.first
    cdef uint64_t size
    cdef uint32_t present
    cdef Status status = OK
    while status == OK and entry <= moved.last:
        status = run_seek(writer.cursor, moved.ledger, entry, &stored)
        if status == NO_ENTRY:
            return OK
        if status != OK or stored.first > moved.last:
            return status
        entry = stored.first + stored.count
        if stored.log_id != moved.from_log and not bk_planted(PLANT_MOVED_ANYWAY):
            continue
        size = run_bytes(&stored, 0, stored.count, &present)
        if stored.offset >= moved.from_offset and size <= moved.bytes \
                and stored.offset - moved.from_offset <= moved.bytes - size:
            k.mv_size, k.mv_data = RUN_KEY_BYTES, key
            v.mv_data = value
            v.mv_size = run_repack(&stored, moved.to_log, moved.to_offset + (stored.offset - moved.from_offset), key,
                                   value)
            status = mdb_status(mdb.put(writer.txn, writer.table, &k, &v, 0))
            bytes[0] += size
        elif stored.offset < moved.from_offset + moved.bytes and moved.from_offset < stored.offset + size:
            status = relocate_part(writer, &stored, moved, bytes)
    return status


cdef Status relocate_part(RunWriter* writer, const StoredRun* stored, const Moved* moved,
                          uint64_t* bytes) noexcept nogil:
    """Store a run of which only some records were moved again, in up to three pieces."""
    cdef IndexRun run, piece
    cdef uint64_t at
    cdef uint32_t begin, end
    cdef Status status
    run_describe(stored, writer.old_lengths, &run)
    at = run.offset
    begin = 0
    while begin < run.count and at < moved.from_offset:
        at += LENGTH_PREFIX + run.lengths[begin] if run.lengths[begin] else 0
        begin += 1
    piece = run
    piece.first = run.first + begin
    piece.lengths = run.lengths + begin
    piece.log_id = moved.to_log
    piece.offset = moved.to_offset + (at - moved.from_offset)
    end = begin
    while end < run.count and at + (LENGTH_PREFIX + run.lengths[end] if run.lengths[end] else 0) \
            <= moved.from_offset + moved.bytes:
        at += LENGTH_PREFIX + run.lengths[end] if run.lengths[end] else 0
        end += 1
    piece.count = end - begin
    bytes[0] += at - (moved.from_offset + (piece.offset - moved.to_offset))
    status = unlink(writer, stored)
    if status == OK:
        status = put_packed(writer, &piece)
    if status == OK:
        piece = run
        piece.count = begin
        status = put_packed(writer, &piece)
    if status == OK:
        piece = run
        piece.first = run.first + end
        piece.lengths = run.lengths + end
        piece.count = run.count - end
        piece.offset = at
        status = put_packed(writer, &piece)
    return status


cdef void run_describe(const StoredRun* stored, uint32_t* lengths, IndexRun* run) noexcept nogil:
    run_lengths(stored, lengths)
    run.ledger = stored.ledger
    run.first = stored.first
    run.count = stored.count
    run.log_id = stored.log_id
    run.offset = stored.offset
    run.lengths = lengths
