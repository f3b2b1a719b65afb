"""What connections whose peers read slowly may keep of the caches: references until their memory is wanted back, then
copies within the budget of output, and never another round.

Whoever could not write all looks at what came in this round (`settle`); when one more region is wanted back, all look
at everything (`settle_all`). So no reference to a region that is wanted outlives a round of its loop. Where what waits
would take more than half of the budget, connections of this loop are closed, those first that have taken nothing for
longest; the other half stays free for answers to those who read. When those who hold little take hardly less than all,
they are closed in the same order, on every loop. Runs on the loop's thread.
"""
from bookie._fast.server.connection cimport Conn
from bookie._fast.server.loop_state cimport IoLoop

# The kernel has not taken all of the output. It may close this connection or others: hold a reference to it.
cdef void settle(IoLoop* loop, Conn* conn) noexcept nogil
# Once a round. It may close any connection.
cdef void settle_all(IoLoop* loop) noexcept nogil
