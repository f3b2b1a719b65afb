"""Puts and deletes by ledger id, each after the pages on its path were found sound (index.guard)."""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from bookie._fast.base.bounds cimport STORED_KEY_MAX, STORED_LAC_MAX
from bookie._fast.base.cursor cimport store_i64
from bookie._fast.base.lmdb_c cimport MDB_RESERVE, MDB_dbi, MDB_val, mdb, mdb_status
from bookie._fast.base.types cimport BAD_REQUEST, NO_ENTRY, OK
from bookie._fast.index.codec cimport (
    FENCE_VALUE_BYTES,
    LEDGER_KEY_BYTES,
    fence_pack,
    ledger_pack,
    ledger_packed_size,
)
from bookie._fast.index.commit_value cimport commit_share
from bookie._fast.index.doubts cimport DOUBT_VALUE_BYTES, doubt_pack
from bookie._fast.index.guard cimport TABLE_DOUBTS, TABLE_FENCES, TABLE_LEDGERS, guard_range
from bookie._fast.index.location cimport index_delete_runs, index_noted, index_ready


cdef Status guarded(LocationIndex* index, uint32_t table, int64_t ledger) noexcept nogil:
    cdef uint8_t[LEDGER_KEY_BYTES] key
    cdef Status status = index_ready(index)
    if status != OK:
        return status
    store_i64(key, ledger)
    return index_noted(index, guard_range(&index.guard, table, key, key, LEDGER_KEY_BYTES))


cdef MDB_dbi dbi_of(LocationIndex* index, uint32_t table) noexcept nogil:
    return index.ledgers if table == TABLE_LEDGERS else index.fences if table == TABLE_FENCES else index.doubtful


cdef Status subtract(LocationIndex* index, uint32_t table, MDB_val* key) noexcept nogil:
    """Take the value that is about to be replaced or deleted out of the sum of its table. NO_ENTRY: there is none."""
    cdef MDB_val old
    cdef Status status = mdb_status(mdb.get(index.txn, dbi_of(index, table), key, &old))
    if status == OK:
        index.sums[table - TABLE_LEDGERS] -= commit_share(old.mv_data, old.mv_size)
    return status


cdef Status put(LocationIndex* index, uint32_t table, uint8_t* key, uint8_t* value, size_t size) noexcept nogil:
    cdef MDB_val k, v
    cdef Status status
    k.mv_size, k.mv_data = LEDGER_KEY_BYTES, key
    v.mv_size, v.mv_data = size, value
    status = subtract(index, table, &k)
    if status == OK or status == NO_ENTRY:
        status = mdb_status(mdb.put(index.txn, dbi_of(index, table), &k, &v, 0))
    if status == OK:
        index.sums[table - TABLE_LEDGERS] += commit_share(value, size)
    index.wrote |= status == OK
    return index_noted(index, status)


cdef Status remove(LocationIndex* index, uint32_t table, int64_t ledger) noexcept nogil:
    """Delete the row of a ledger from a table, if there is one."""
    cdef uint8_t[LEDGER_KEY_BYTES] key
    cdef MDB_val k
    cdef Status status
    store_i64(key, ledger)
    k.mv_size, k.mv_data = LEDGER_KEY_BYTES, key
    status = subtract(index, table, &k)
    if status == OK:
        status = mdb_status(mdb.remove(index.txn, dbi_of(index, table), &k, NULL))
    index.wrote |= status == OK
    return index_noted(index, OK if status == NO_ENTRY else status)


cdef Status index_put_ledger(LocationIndex* index, const LedgerRecord* record) noexcept nogil:
    cdef uint8_t[LEDGER_KEY_BYTES] key
    cdef MDB_val k, v
    cdef Status status = guarded(index, TABLE_LEDGERS, record.ledger)
    if status != OK:
        return status
    if record.key_size > STORED_KEY_MAX or record.lac_size > STORED_LAC_MAX:
        return BAD_REQUEST
    store_i64(key, record.ledger)
    k.mv_size, k.mv_data = LEDGER_KEY_BYTES, key
    v.mv_size, v.mv_data = ledger_packed_size(record), NULL
    status = subtract(index, TABLE_LEDGERS, &k)
    if status == OK or status == NO_ENTRY:
        status = mdb_status(mdb.put(index.txn, index.ledgers, &k, &v, MDB_RESERVE))
    index.wrote |= status == OK
    if status == OK:
        ledger_pack(record, key, <uint8_t*> v.mv_data)
        index.sums[0] += commit_share(v.mv_data, v.mv_size)
    return index_noted(index, status)


cdef Status index_put_fence(LocationIndex* index, int64_t ledger, int64_t deleted_ms) noexcept nogil:
    cdef uint8_t[LEDGER_KEY_BYTES] key
    cdef uint8_t[FENCE_VALUE_BYTES] value
    cdef Status status = guarded(index, TABLE_FENCES, ledger)
    if status != OK:
        return status
    fence_pack(ledger, deleted_ms, key, value)
    return put(index, TABLE_FENCES, key, value, FENCE_VALUE_BYTES)


cdef Status index_delete_fence(LocationIndex* index, int64_t ledger) noexcept nogil:
    cdef Status status = guarded(index, TABLE_FENCES, ledger)
    return status if status != OK else remove(index, TABLE_FENCES, ledger)


cdef Status index_put_doubt(LocationIndex* index, int64_t ledger, bint lasting) noexcept nogil:
    cdef uint8_t[LEDGER_KEY_BYTES] key
    cdef uint8_t[DOUBT_VALUE_BYTES] value
    cdef Status status = guarded(index, TABLE_DOUBTS, ledger)
    if status != OK:
        return status
    doubt_pack(ledger, lasting, key, value)
    return put(index, TABLE_DOUBTS, key, value, DOUBT_VALUE_BYTES)


cdef Status index_delete_doubt(LocationIndex* index, int64_t ledger) noexcept nogil:
    cdef Status status = guarded(index, TABLE_DOUBTS, ledger)
    return status if status != OK else remove(index, TABLE_DOUBTS, ledger)


cdef Status index_delete_ledger(LocationIndex* index, int64_t ledger) noexcept nogil:
    cdef uint32_t most = 0xFFFFFFFF
    cdef Status status = guarded(index, TABLE_LEDGERS, ledger)
    if status == OK:
        status = remove(index, TABLE_LEDGERS, ledger)
    return status if status != OK else index_delete_runs(index, ledger, &most)
