"""Responses that wait for a journal, by loop and journal. State only; `acks` fills and empties the queues."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.server.connection cimport Conn
from bookie._fast.store.gather cimport ReadRequest

cdef struct Ack:
    # A response that waits for a journal group.
    int64_t group
    Conn* conn
    int64_t ledger
    int64_t entry
    uint64_t request_id
    int64_t begun            # monotonic ns of the round in which the request came in
    uint32_t size            # of the entry that is added
    ReadRequest* read        # of a fencing read, which is served after the sync; else NULL
    uint8_t protocol
    uint8_t op
    uint8_t version
    uint32_t flags           # of the request

cdef struct AckQueue:
    Ack* ring
    uint64_t head
    uint64_t tail
    uint64_t room            # power of two
