"""The read pool: queues of cold reads, the threads that work them off, and the way back to the loops that asked.

Each connection has a queue, and the threads take one read of each in turn: who asks for thousands waits for itself.
"""
from libc.stdint cimport int64_t

from bookie._fast.base.sync cimport pthread_cond_t, pthread_mutex_t
from bookie._fast.base.types cimport Status
from bookie._fast.base.waker cimport Waker
from bookie._fast.store.gather cimport Answer, ReadRequest
from bookie._fast.store.lane cimport Lane
from bookie._fast.store.loads cimport Loads
from bookie._fast.store.stores cimport Storage

cdef struct Inbox:
    # Where a loop's finished jobs wait; newest first.
    pthread_mutex_t lock
    PoolJob* jobs
    bint closed              # nobody will look at answers any more
    int64_t owed             # jobs submitted and not taken back; the loop's own
    int64_t owed_max
    int64_t refused          # jobs over that
    Waker* waker

cdef struct PoolJob:
    ReadRequest request
    Answer answer
    int64_t queued           # when it came, monotonic ns
    Inbox* inbox             # NULL: only read ahead from request.entry, nobody waits for it
    PoolJob* next

cdef struct ReadPool:
    Storage* stores
    Loads loads
    pthread_mutex_t lock     # guards the queue
    pthread_cond_t filled
    Lane* first              # of the queues that hold something, in turn
    Lane* last
    Lane ahead               # the queue of what nobody waits for
    int64_t queued           # atomic; written with the lock
    int64_t queued_max
    int64_t jobs             # atomic; that wait, are served, or whose answer no loop has taken yet
    int64_t served           # atomic
    bint stopping

# Let the pool read ahead, if the answer tells from where; never waits.
cdef void pool_read_ahead(ReadPool* pool, int64_t ledger, Answer* answer) noexcept nogil
# To the end of this queue, which stays where it is until the job is back. TOO_MANY_REQUESTS when as many wait in all as
# may, or the inbox is owed as many; fences, high priority and the only one of its queue have more room.
# The inbox gets the job back with its answer; it owns it then (`pool_free`).
cdef Status pool_submit(ReadPool* pool, const ReadRequest* request, Lane* lane, Inbox* inbox) noexcept nogil
# Any thread; its answer is released.
cdef void pool_free(ReadPool* pool, PoolJob* job) noexcept nogil

cdef class ReadPoolWorkers:
    cdef ReadPool pool
    cdef object stores_room
