"""The read pool: queues of cold reads, the threads that serve them, and the way back to the loops that asked.

Each connection has a queue, and the threads take one read of each in turn, so a connection with thousands of reads
delays only itself.
"""
from libc.stdint cimport int64_t, uint32_t

from bookie._fast.base.bounds cimport READ_THREADS_MAX
from bookie._fast.base.sync cimport pthread_cond_t, pthread_mutex_t
from bookie._fast.base.types cimport Status
from bookie._fast.base.waker cimport Waker
from bookie._fast.store.gather cimport Answer, ReadRequest
from bookie._fast.store.loads cimport Loads
from bookie._fast.store.read_queue cimport ReadQueue
from bookie._fast.store.stores cimport Storage

cdef struct Inbox:
    # The finished jobs of a loop, newest first.
    pthread_mutex_t lock
    PoolJob* jobs
    bint closed              # the loop takes no more jobs
    int64_t owed             # jobs submitted whose completion was not collected; used by the loop only
    int64_t owed_max
    int64_t refused          # jobs above this limit or that of the pool
    Waker* waker

cdef struct PoolJob:
    ReadRequest request
    Answer answer
    int64_t queued           # monotonic ns when it was submitted
    Inbox* inbox             # NULL: only read ahead from request.entry, nothing waits for it
    PoolJob* next

cdef struct Sleeper:
    # A thread of the pool, or one that may start. With the pool's lock.
    pthread_cond_t wake
    Sleeper* next
    bint asleep              # in the list

cdef struct ReadPool:
    Storage* stores
    Loads loads
    pthread_mutex_t lock     # guards the queues and the list of sleepers
    Sleeper sleepers[READ_THREADS_MAX]
    uint32_t threads         # that took a sleeper
    Sleeper* asleep          # the threads without a job; the last to fall asleep, whose memory is warm, is called first
    ReadQueue* first              # queues that are not empty, in turn
    ReadQueue* last
    ReadQueue ahead               # the queue of read-ahead jobs
    int64_t queued           # atomic; written with the lock
    int64_t queued_max
    int64_t jobs             # atomic; jobs that wait, are served, or were not collected by their loop yet
    int64_t served           # atomic
    bint stopping

# Submit a job to read ahead if `answer.ahead` asks for it; never waits.
cdef void pool_read_ahead(ReadPool* pool, int64_t ledger, Answer* answer) noexcept nogil
# Append a job to this queue, which must stay in place until the job is back. TOO_MANY_REQUESTS if too many jobs wait
# in total, or are owed to the inbox; fences, high priority, and the only job of its queue have higher limits. The
# inbox gets the job back with its answer, and owns it then (`pool_free`).
cdef Status pool_submit(ReadPool* pool, const ReadRequest* request, ReadQueue* queue, Inbox* inbox) noexcept nogil
# Take back the jobs of a queue that no thread has begun, because nobody waits for them any more. Return them linked by
# `next`, for the caller to free; what their inbox is owed is the caller's to correct as well.
cdef PoolJob* pool_withdraw(ReadPool* pool, ReadQueue* queue) noexcept nogil
# Free a job whose answer was released. Any thread.
cdef void pool_free(ReadPool* pool, PoolJob* job) noexcept nogil

cdef class ReadPoolWorkers:
    cdef ReadPool pool
    cdef object stores_room
