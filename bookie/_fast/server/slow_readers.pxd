"""What connections of slow clients may keep of the caches: references until a cache needs the memory back, then
copies within the budget of output. No reference to such memory outlives one round of its loop.

A connection that could not write everything looks at the output of this round (`settle`); when one more region of a
cache is needed back, all connections look at all of their output (`settle_all`). Unsent output may take half of the
budget; the other half stays free for answers to clients that read. Where it would take more, buffers first give back
what they hold beyond their unsent bytes; then connections of this loop are closed, of those with the most unsent output
the one whose kernel has accepted nothing for longest. When many connections with little unsent output together take
almost the whole budget, they are closed in the order of how long their kernels have accepted nothing, on every loop.
Runs on the loop's thread.
"""
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop

# Handle output that the kernel has not accepted. It may close this connection or others: hold a reference to it.
cdef void settle(IoLoop* loop, Conn* conn) noexcept nogil
# Check all connections, once a round. It may close any of them.
cdef void settle_all(IoLoop* loop) noexcept nogil
