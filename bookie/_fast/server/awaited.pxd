"""Responses that follow in a later round than the request: after a journal's group, the read pool, Python, or a wait
for a higher LAC. Runs on the loop's thread.
"""
from bookie._fast.server.ack_queue cimport AckQueue
from bookie._fast.server.loop_state cimport IoLoop

# Answer adds and other requests that waited for a journal, a bounded number at a time; `loop.more_acks` tells whether
# there are more.
cdef void serve_acks(IoLoop* loop) noexcept nogil
# Free an ended loop's Acks and their queue.
cdef void drop_acks(AckQueue* queue) noexcept nogil
# Answer reads that the read pool has finished; requests that Python answered; and long polls that have ended.
cdef void serve_inbox(IoLoop* loop) noexcept nogil
cdef void serve_policy(IoLoop* loop) noexcept nogil
cdef void serve_polls(IoLoop* loop) noexcept nogil
