"""Rewrites runs in key order, each with the key of the next one."""
from libc.stdint cimport uint8_t, uint32_t

from bookie._fast.base.cursor cimport load_i64, store_i64
from bookie._fast.base.lmdb_c cimport (
    MDB_FIRST,
    MDB_NEXT,
    MDB_NOTFOUND,
    MDB_SET_RANGE,
    MDB_stat,
    MDB_val,
    mdb,
    mdb_status,
)
from bookie._fast.base.types cimport CORRUPT, NO_ENTRY, OK
from bookie._fast.index.codec cimport (
    HEAD_KEY_BYTES,
    RUN_HEADER_BYTES,
    RUN_KEY_BYTES,
    RUN_VALUE_MAX,
    IndexRun,
    StoredRun,
    head_pack,
    run_relink,
    run_unpack,
    run_unpack_unchained,
)
from bookie._fast.index.key cimport key_end, key_equal
from bookie._fast.index.table cimport run_describe, run_put_values


cdef Status run_upgrade_some(RunWriter* writer, Upgrade* upgrade) noexcept nogil:
    cdef MDB_val key
    cdef MDB_stat table
    cdef uint32_t left = UPGRADE_RUNS_A_COMMIT
    cdef Status status = first_key(writer, &key)
    if status != OK and status != NO_ENTRY:
        return status
    upgrade.done = status == NO_ENTRY or key.mv_size == HEAD_KEY_BYTES
    if upgrade.done:
        return put_head(writer, key_end()) if status == NO_ENTRY else OK
    if not upgrade.begun:
        status = mdb_status(mdb.stat(writer.txn, writer.table, &table))
        upgrade.runs = table.ms_entries
        upgrade.begun = True
    while status == OK and left and not key_equal(upgrade.at, key_end()):
        status = one(writer, upgrade)
        left -= 1
    if status != OK or not key_equal(upgrade.at, key_end()):
        return status
    # Runs hidden by a damaged page must not be denied from now on.
    if upgrade.seen != upgrade.runs:
        return CORRUPT
    status = first_key(writer, &key)
    upgrade.done = True
    return status if status != OK else put_head(writer, run_key(&key))


cdef inline RunKey run_key(const MDB_val* key) noexcept nogil:
    return RunKey(load_i64(key.mv_data), load_i64(<uint8_t*> key.mv_data + 8))


cdef Status first_key(RunWriter* writer, MDB_val* key) noexcept nogil:
    cdef MDB_val value
    cdef Status status = mdb_status(mdb.cursor_get(writer.cursor, key, &value, MDB_FIRST))
    if status == OK and key.mv_size != HEAD_KEY_BYTES and key.mv_size != RUN_KEY_BYTES:
        return CORRUPT
    return status


cdef Status put_head(RunWriter* writer, RunKey next) noexcept nogil:
    cdef uint8_t[HEAD_KEY_BYTES] key
    cdef uint8_t[RUN_HEADER_BYTES] value
    cdef MDB_val k, v
    head_pack(next, key, value)
    k.mv_size, k.mv_data = HEAD_KEY_BYTES, key
    v.mv_size, v.mv_data = RUN_HEADER_BYTES, value
    return mdb_status(mdb.put(writer.txn, writer.table, &k, &v, 0))


cdef Status one(RunWriter* writer, Upgrade* upgrade) noexcept nogil:
    """Upgrade the first run at or after `upgrade.at`, and move that to the next run."""
    cdef uint8_t[RUN_KEY_BYTES] wanted
    cdef MDB_val key, value, next_key, ignored
    cdef RunKey next = key_end()
    cdef int error
    store_i64(wanted, upgrade.at.ledger)
    store_i64(wanted + 8, upgrade.at.first)
    key.mv_size, key.mv_data = RUN_KEY_BYTES, wanted
    error = mdb.cursor_get(writer.cursor, &key, &value, MDB_SET_RANGE)
    if error == MDB_NOTFOUND:
        upgrade.at = key_end()
        return OK
    if error == 0:
        error = mdb.cursor_get(writer.cursor, &next_key, &ignored, MDB_NEXT)
    if error and error != MDB_NOTFOUND:
        return mdb_status(error)
    if error == 0:
        if next_key.mv_size != RUN_KEY_BYTES:
            return CORRUPT
        next = run_key(&next_key)
    upgrade.at = next
    upgrade.seen += 1
    return rewrite(writer, &key, &value, next)


cdef Status rewrite(RunWriter* writer, MDB_val* key, const MDB_val* value, RunKey next) noexcept nogil:
    """Rewrite a run of the old version as one or two of this version; for one of this version, set its next run."""
    cdef uint8_t[RUN_VALUE_MAX] changed
    cdef MDB_val v
    cdef StoredRun stored
    cdef IndexRun run
    if run_unpack_unchained(key.mv_data, key.mv_size, value.mv_data, value.mv_size, &stored) == OK:
        run_describe(&stored, writer.old_lengths, &run)
        return run_put_values(writer, &run, next)
    if run_unpack(key.mv_data, key.mv_size, value.mv_data, value.mv_size, &stored) != OK:
        return OK
    if stored.count == 0 or key_equal(stored.next, next):
        return OK
    run_relink(key.mv_data, key.mv_size, value.mv_data, value.mv_size, next, changed)
    v.mv_size, v.mv_data = value.mv_size, changed
    return mdb_status(mdb.put(writer.txn, writer.table, key, &v, 0))
