"""Finding, cutting and storing runs in LMDB. No memory of its own but the writer's scratch.

A put first cuts every stored run that it touches down to what stays: an entry that the new run holds too is dropped
from the old one, an entry whose id is a gap of the new run stays, and the new run is stored in pieces around it. Bytes
of a piece lie together in their log, so a piece never reaches over an id that another run holds.
"""
from libc.stdint cimport INT64_MAX, UINT32_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from bookie._fast.cursor cimport load_i64, store_i64
from bookie._fast.lmdb_c cimport (
    MDB_LAST,
    MDB_NOTFOUND,
    MDB_PREV,
    MDB_SET_RANGE,
    MDB_cursor,
    MDB_val,
    mdb,
    mdb_status,
)
from bookie._fast.run_codec cimport (
    RUN_KEY_BYTES,
    RUN_SLOTS_MAX,
    RUN_VALUE_MAX,
    IndexRun,
    StoredRun,
    run_bytes,
    run_lengths,
    run_pack,
    run_repack,
    run_unpack,
)
from bookie._fast.types cimport BAD_REQUEST, FULL, IO_ERROR, LENGTH_PREFIX, NO_ENTRY, OK, Status


cdef Status run_seek(MDB_cursor* cursor, int64_t ledger, int64_t entry, StoredRun* run) noexcept nogil:
    """The run of `ledger` that spans `entry` (perhaps as a gap), else the first one behind it, else NO_ENTRY."""
    cdef uint8_t[RUN_KEY_BYTES] wanted
    cdef MDB_val key, value, before_key, before
    cdef Status status
    cdef int error
    cdef bint found
    store_i64(wanted, ledger)
    store_i64(wanted + 8, entry)
    key.mv_size, key.mv_data = RUN_KEY_BYTES, wanted
    error = mdb.cursor_get(cursor, &key, &value, MDB_SET_RANGE)
    if error and error != MDB_NOTFOUND:
        return IO_ERROR
    found = error == 0 and of_ledger(&key, ledger)
    if found and load_i64(<uint8_t*> key.mv_data + 8) == entry:
        return run_unpack(key.mv_data, key.mv_size, value.mv_data, value.mv_size, run)
    error = mdb.cursor_get(cursor, &before_key, &before, MDB_PREV if error == 0 else MDB_LAST)
    if error and error != MDB_NOTFOUND:
        return IO_ERROR
    if error == 0 and of_ledger(&before_key, ledger):
        status = run_unpack(before_key.mv_data, before_key.mv_size, before.mv_data, before.mv_size, run)
        if status != OK or run.first + run.count > entry:
            return status
    if not found:
        return NO_ENTRY
    return run_unpack(key.mv_data, key.mv_size, value.mv_data, value.mv_size, run)


cdef bint of_ledger(const MDB_val* key, int64_t ledger) noexcept nogil:
    return key.mv_size == RUN_KEY_BYTES and load_i64(key.mv_data) == ledger


cdef Status run_last(MDB_cursor* cursor, int64_t ledger, StoredRun* run) noexcept nogil:
    cdef uint8_t[RUN_KEY_BYTES] wanted
    cdef MDB_val key, value
    cdef int error
    store_i64(wanted, ledger)
    store_i64(wanted + 8, INT64_MAX)            # behind every run: ids end below it
    key.mv_size, key.mv_data = RUN_KEY_BYTES, wanted
    error = mdb.cursor_get(cursor, &key, &value, MDB_SET_RANGE)
    if error == 0 or error == MDB_NOTFOUND:
        error = mdb.cursor_get(cursor, &key, &value, MDB_PREV if error == 0 else MDB_LAST)
    if error:
        return mdb_status(error)
    if not of_ledger(&key, ledger):
        return NO_ENTRY
    return run_unpack(key.mv_data, key.mv_size, value.mv_data, value.mv_size, run)


cdef Status run_put(RunWriter* writer, const IndexRun* run) noexcept nogil:
    cdef Status status
    if run.count == 0 or run.count > RUN_SLOTS_MAX or run.first < 0 or run.first > INT64_MAX - run.count:
        return BAD_REQUEST
    if run.lengths[0] == 0 or run.lengths[run.count - 1] == 0:
        return BAD_REQUEST
    memset(writer.new_occupied, 0, run.count)
    status = make_way(writer, run)
    return status if status != OK else put_pieces(writer, run, writer.new_occupied)


cdef Status run_add(RunWriter* writer, const IndexRun* run) noexcept nogil:
    cdef IndexRun piece = run[0]
    if run.count == 0 or run.count > RUN_SLOTS_MAX or run.first < 0 or run.first > INT64_MAX - run.count:
        return BAD_REQUEST
    if run.lengths[0] == 0 or run.lengths[run.count - 1] == 0:
        return BAD_REQUEST
    return put_packed(writer, &piece)


cdef Status make_way(RunWriter* writer, const IndexRun* run) noexcept nogil:
    """Cut every stored run that `run` touches down to what stays of it; mark the gaps of `run` that are occupied."""
    cdef uint8_t[RUN_KEY_BYTES] key
    cdef MDB_val k
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
        store_i64(key, old.ledger)
        store_i64(key + 8, old.first)
        k.mv_size, k.mv_data = RUN_KEY_BYTES, key
        status = mdb_status(mdb.remove(writer.txn, writer.table, &k, NULL))
        if status == OK:
            status = put_pieces(writer, &old, writer.old_replaced)
    return status


cdef void mark(RunWriter* writer, const IndexRun* run, const IndexRun* old) noexcept nogil:
    """For each id of `old`: does `run` replace it, or does it stay in a gap of `run`?"""
    cdef uint32_t slot
    cdef int64_t at
    for slot in range(old.count):
        at = old.first - run.first + slot
        writer.old_replaced[slot] = 0 <= at < run.count and run.lengths[at] != 0
        if 0 <= at < run.count and old.lengths[slot] and not run.lengths[at]:
            writer.new_occupied[at] = 1


cdef Status put_pieces(RunWriter* writer, const IndexRun* run, const uint8_t* cut) noexcept nogil:
    """Store `run` without the slots marked in `cut`; no piece reaches over one of those."""
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


cdef Status put_packed(RunWriter* writer, IndexRun* piece) noexcept nogil:
    """Store `piece` in as many values as it takes; consumes it: piece.offset ends behind its last record."""
    cdef uint8_t[RUN_KEY_BYTES] key
    cdef uint8_t[RUN_VALUE_MAX] value
    cdef MDB_val k, v
    cdef size_t size
    cdef uint32_t packed, i
    cdef Status status
    while piece.count:
        if piece.lengths[0] == 0:
            packed = 1
        else:
            packed = run_pack(piece, key, value, &size)
            k.mv_size, k.mv_data = RUN_KEY_BYTES, key
            v.mv_size, v.mv_data = size, value
            status = mdb_status(mdb.put(writer.txn, writer.table, &k, &v, 0))
            if status != OK:
                return status
        for i in range(packed):
            if piece.lengths[i]:
                piece.offset += <uint64_t> piece.lengths[i] + LENGTH_PREFIX
        piece.first += packed
        piece.lengths += packed
        piece.count -= packed
    return OK


cdef Status run_delete_ledger(RunWriter* writer, int64_t ledger) noexcept nogil:
    cdef uint32_t most = UINT32_MAX
    return run_delete_some(writer, ledger, &most)


cdef Status run_delete_some(RunWriter* writer, int64_t ledger, uint32_t* most) noexcept nogil:
    """Runs that cannot be unpacked go as well."""
    cdef uint8_t[RUN_KEY_BYTES] first
    cdef MDB_val key, value
    cdef int error = 0
    store_i64(first, ledger)
    store_i64(first + 8, 0)
    while error == 0:
        key.mv_size, key.mv_data = RUN_KEY_BYTES, first
        error = mdb.cursor_get(writer.cursor, &key, &value, MDB_SET_RANGE)
        if error == 0 and not of_ledger(&key, ledger):
            return OK
        if error == 0 and most[0] == 0:
            return FULL
        if error == 0:
            error = mdb.cursor_del(writer.cursor, 0)
            most[0] -= 1
    return OK if error == MDB_NOTFOUND else mdb_status(error)


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
        if stored.log_id != moved.from_log:
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
    """A run of which only some records were moved: stored anew in up to three pieces."""
    cdef uint8_t[RUN_KEY_BYTES] key
    cdef MDB_val k
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
    store_i64(key, run.ledger)
    store_i64(key + 8, run.first)
    k.mv_size, k.mv_data = RUN_KEY_BYTES, key
    status = mdb_status(mdb.remove(writer.txn, writer.table, &k, NULL))
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
