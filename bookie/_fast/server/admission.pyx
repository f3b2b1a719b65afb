"""Requests in progress: responses that wait for a journal, and reads that wait for the disk."""
from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t

from bookie._fast.base.sync cimport bk_add, bk_load
from bookie._fast.base.types cimport OK, TOO_MANY_REQUESTS
from bookie._fast.server.users cimport MAY_WRITE
from bookie._fast.wire.request cimport (
    ADD_ENTRY,
    BATCH_READ_ENTRY,
    FENCE,
    FORCE_LEDGER,
    HIGH_PRIORITY,
    READ_ENTRY,
    URGENT,
    WRITE_LAC,
)

cdef enum:
    SHARE_OF_ADDRESS = 8         # an address may have 1 / this of the urgent requests
    HELD_REFS = 2                # references while a frame is served: the open connection's, and the loop's


cdef inline int64_t adds_of(const IoLoop* loop, uint64_t journal) noexcept nogil:
    return <int64_t> (loop.acks[journal].tail - loop.acks[journal].head
                      + loop.written[journal].tail - loop.written[journal].head)


cdef int64_t adds_under_way(const IoLoop* loop) noexcept nogil:
    cdef int64_t count = 0
    cdef uint32_t i
    for i in range(loop.stores.journal_count):
        count += adds_of(loop, i)
    return count


cdef bint too_many_adds(const IoLoop* loop, int64_t ledger, int64_t most) noexcept nogil:
    """Return whether no more adds may wait for the journals. Each of them may have its equal part in any case, so that
    one whose disk hangs does not use up what is for the others.
    """
    cdef uint64_t journals = loop.stores.journal_count
    return adds_under_way(loop) >= most and adds_of(loop, <uint64_t> ledger % journals) >= most // <int64_t> journals


cdef Status refused(int64_t* counter) noexcept nogil:
    counter[0] += 1
    return TOO_MANY_REQUESTS


cdef bint goes_before(const IoLoop* loop, const Conn* conn) noexcept nogil:
    if loop.limits.authenticate:
        return conn.login.may & MAY_WRITE != 0
    return bk_load(&conn.address.urgent) < max(loop.limits.pending_urgent_max // SHARE_OF_ADDRESS, 1)


cdef void urgent_begins(Conn* conn, uint32_t flags) noexcept nogil:
    if flags & URGENT and conn.address != NULL:
        conn.login.urgent += 1
        bk_add(&conn.address.urgent, 1)


cdef void urgent_ends(Conn* conn, uint32_t flags) noexcept nogil:
    if flags & URGENT and conn.address != NULL:
        conn.login.urgent -= 1
        bk_add(&conn.address.urgent, -1)


cdef void urgent_leaves(Conn* conn) noexcept nogil:
    if conn.login.urgent:
        bk_add(&conn.address.urgent, -conn.login.urgent)
        conn.login.urgent = 0


cdef Status admission(IoLoop* loop, const Conn* conn, Request* request) noexcept nogil:
    cdef bint appends = request.op == ADD_ENTRY or request.op == FORCE_LEDGER or request.op == WRITE_LAC
    cdef bint reads = request.op == READ_ENTRY or request.op == BATCH_READ_ENTRY
    cdef bint fences = reads and request.flags & FENCE
    cdef bint urgent = fences or request.flags & HIGH_PRIORITY
    cdef int64_t of_connection = loop.limits.pending_per_connection_max
    cdef int64_t of_loop = loop.limits.pending_adds_max
    if not appends and not reads:
        return OK
    if urgent and goes_before(loop, conn):
        request.flags |= URGENT
        of_connection += loop.limits.pending_urgent_max
        of_loop += loop.limits.pending_urgent_max
    if conn.refs - HELD_REFS - conn.polls.count >= of_connection:
        return refused(&loop.stats.refused_urgent if urgent else &loop.stats.refused_by_connection)
    if (appends or fences) and too_many_adds(loop, request.ledger, of_loop):
        return refused(&loop.stats.refused_urgent if urgent else &loop.stats.refused_adds)
    return OK


cdef bint hold_back(IoLoop* loop, Conn* conn) noexcept nogil:
    cdef int64_t adds_max = loop.limits.adds_in_progress_max
    cdef int64_t reads_max = loop.limits.reads_in_progress_max
    if adds_max == 0 and reads_max == 0:
        return False
    if (adds_max and adds_under_way(loop) >= adds_max) or (reads_max and loop.inbox.owed >= reads_max):
        if conn.stalled_until == 0:
            conn.stalled_until = INT64_MAX
            loop.stalled += 1
            loop.stats.held_back += 1
        return True
    if conn.stalled_until == INT64_MAX:
        conn.stalled_until = 0   # the next frame may still have to wait for something else
        loop.stalled -= 1
    return False
