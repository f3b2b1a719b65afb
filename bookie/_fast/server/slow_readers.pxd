"""What slow clients may hold of the caches: references until a cache needs the memory back, then copies within the
budget of output. No reference to such memory outlives one round of its loop.

`settle` handles the output of one connection that could not send all of it in this round; when another region of a
cache is needed back, `settle_all` handles all output of all connections. Unsent output may take half of the budget; the
other half stays free for responses to clients that read. If it would take more, buffers are first reduced to their
unsent bytes; then connections of this loop are closed: of those with the most unsent output, the one whose kernel has
accepted nothing for longest. When many connections with little unsent output together take almost the whole budget,
they are closed in the order of how long their kernels have accepted nothing, on every loop. Runs on the loop's thread.
"""
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop

# Handle output that the kernel has not accepted. It may close this connection or others: hold a reference to it.
cdef void settle(IoLoop* loop, Conn* conn) noexcept nogil
# Check all connections, once a round. It may close any of them.
cdef void settle_all(IoLoop* loop) noexcept nogil
