"""What a loop answers later than in the round that brought the request: what journals made durable, what the read pool
found, what Python decided, and reads whose wait for a LAC is over. Runs on the loop's thread.
"""
from bookie._fast.server.ack_queue cimport AckQueue
from bookie._fast.server.loop_state cimport IoLoop

# Adds and whatever else waited for a journal, a bounded number at a time: `loop.more_acks` says that there are more.
cdef void serve_acks(IoLoop* loop) noexcept nogil
cdef void drop_acks(AckQueue* queue) noexcept nogil
cdef void serve_inbox(IoLoop* loop) noexcept nogil
cdef void serve_policy(IoLoop* loop) noexcept nogil
cdef void serve_polls(IoLoop* loop) noexcept nogil
