"""Queues of responses that wait: rings that double."""
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc

from bookie._fast.base.planted cimport PLANT_ACK_NEXT_GROUP, bk_planted
from bookie._fast.base.sync cimport bk_fence, bk_store
from bookie._fast.server.admission cimport urgent_begins
from bookie._fast.server.rejections cimport OUT_OF_MEMORY

cdef enum:
    ACKS_FIRST = 1024


cdef bint grow(AckQueue* queue) noexcept nogil:
    cdef uint64_t room = queue.room * 2 if queue.room else ACKS_FIRST
    cdef uint64_t i
    cdef Ack* ring = <Ack*> malloc(room * sizeof(Ack))
    if ring == NULL:
        return False
    for i in range(queue.head, queue.tail):
        ring[i & (room - 1)] = queue.ring[i & (queue.room - 1)]
    free(queue.ring)
    queue.ring = ring
    queue.room = room
    return True


cdef bint ack_later(IoLoop* loop, Conn* conn, const Request* request, int64_t ledger, int64_t group, ReadRequest* read,
                    bint written) noexcept nogil:
    cdef int64_t at = <int64_t> (<uint64_t> ledger % loop.stores.journal_count)
    cdef AckQueue* queue = &loop.written[at] if written else &loop.acks[at]
    cdef int64_t* waiting = &loop.waker.waiting_written if written else &loop.waker.waiting
    cdef Ack* ack
    if queue.tail - queue.head == queue.room and not grow(queue):
        conn.why = OUT_OF_MEMORY
        return False
    ack = &queue.ring[queue.tail & (queue.room - 1)]
    queue.tail += 1
    ack.group = group
    ack.conn = conn
    ack.ledger = request.ledger
    ack.entry = request.entry
    ack.request_id = request.request_id
    ack.begun = loop.now
    ack.size = request.body_size
    ack.read = read
    ack.protocol = request.protocol
    ack.op = request.op
    ack.version = request.version
    ack.flags = request.flags
    urgent_begins(conn, request.flags)
    conn.refs += 1
    loop.appended[at] += 1
    if not waiting[0]:
        bk_store(waiting, 1)
        bk_fence()               # the committer sees this, or the loop sees the published group before it sleeps
    return True


cdef Ack* ack_next(AckQueue* queue, int64_t published) noexcept nogil:
    cdef Ack* ack
    if queue.head == queue.tail:
        return NULL
    ack = &queue.ring[queue.head & (queue.room - 1)]
    if ack.group > published + bk_planted(PLANT_ACK_NEXT_GROUP):
        return NULL
    queue.head += 1
    return ack


cdef void acks_free(AckQueue* queue) noexcept nogil:
    free(queue.ring)
    queue.ring = NULL
    queue.head = queue.tail = queue.room = 0
