"""Answers that wait for a journal: two queues a journal, for what is to be synced and for what only to be written.

Runs on the connection's I/O loop. A queue is in the order of its groups, since its loop appends in order.
"""
from libc.stdint cimport int64_t

from bookie._fast.server.ack_queue cimport Ack, AckQueue
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop
from bookie._fast.store.gather cimport ReadRequest
from bookie._fast.wire.request cimport Request

# Answer the request when the journal of `ledger` has synced `group`, or with `written` when it has written it. `read`
# (owned then) is what is to be served, NULL: the answer is that it went well. Takes a reference of the connection.
# False: no memory.
cdef bint ack_later(IoLoop* loop, Conn* conn, const Request* request, int64_t ledger, int64_t group, ReadRequest* read,
                    bint written) noexcept nogil
# The next one of the queue whose group is published, off it; it stays valid until one is added. NULL: none.
cdef Ack* ack_next(AckQueue* queue, int64_t published) noexcept nogil
# Free a queue's memory; what it still holds must have been taken.
cdef void acks_free(AckQueue* queue) noexcept nogil
