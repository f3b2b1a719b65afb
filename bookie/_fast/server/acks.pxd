"""Responses that wait for a journal, in two queues for each: one for groups to be synced, one for groups to be
written.

Runs on the connection's I/O loop. A queue is in the order of its groups, since its loop appends in order.
"""
from libc.stdint cimport int64_t

from bookie._fast.server.ack_queue cimport Ack, AckQueue
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop
from bookie._fast.store.gather cimport ReadRequest
from bookie._fast.wire.request cimport Request

# Answer the request when the journal of `ledger` has synced `group`, or, with `written`, has written it. The response
# is that of `read`, which the queue then owns, or a success if it is NULL. Takes a reference to the connection. Return
# False if there is no memory.
cdef bint ack_later(IoLoop* loop, Conn* conn, const Request* request, int64_t ledger, int64_t group, ReadRequest* read,
                    bint written) noexcept nogil
# Remove the next Ack whose group is published, and return it; it is valid until one is added. NULL if there is none.
cdef Ack* ack_next(AckQueue* queue, int64_t published) noexcept nogil
# Free a queue's memory. All its Acks have been taken.
cdef void acks_free(AckQueue* queue) noexcept nogil
