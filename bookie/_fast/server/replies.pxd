"""Every answer of the data path, in the protocol of its request. Runs on the connection's I/O loop.

An answer goes to the end of its connection's output. CLOSED: the output is over its budget, or memory ran out: close
the connection.
"""
from bookie._fast.base.types cimport Status
from bookie._fast.server.ack_queue cimport Ack
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop
from bookie._fast.store.gather cimport Answer, ReadRequest
from bookie._fast.wire.request cimport Request

# An answer without entries: an acknowledgement, or a refusal.
cdef Status reply_code(IoLoop* loop, Conn* conn, const Request* request, Status status) noexcept nogil
# A V3 request that has no answer of its own: a copy of its header, and a status.
cdef Status reply_refused(IoLoop* loop, Conn* conn, const Request* request, Status status) noexcept nogil
# What was acknowledged later: the Ack has all that its answer echoes.
cdef Status reply_ack(IoLoop* loop, const Ack* ack) noexcept nogil
# Entries, or the reason why there are none. Gives up the answer's pins.
cdef Status reply_read(IoLoop* loop, Conn* conn, const ReadRequest* request, Answer* answer) noexcept nogil
# What a bookie without authentication answers to any AUTH.
cdef Status reply_auth(IoLoop* loop, Conn* conn, const Request* request) noexcept nogil
