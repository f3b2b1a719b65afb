"""The read pool: queues of cold reads, the threads that serve them, and the way back to the loops that asked.

Each ledger directory has threads of its own, so reads of a disk that hangs delay no others. Each connection has a queue
for each directory, and the threads take one read of each queue in turn, so a connection with thousands of reads delays
only itself.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.bounds cimport READ_THREADS_MAX
from bookie._fast.base.sync cimport pthread_cond_t, pthread_mutex_t
from bookie._fast.base.types cimport Status
from bookie._fast.base.waker cimport Waker
from bookie._fast.store.gather cimport Answer, ReadRequest
from bookie._fast.store.loads cimport Loads
from bookie._fast.store.read_queue cimport ReadQueue
from bookie._fast.store.stores cimport STORES_MOST, Storage

cdef struct Inbox:
    # The finished jobs of a loop, newest first.
    pthread_mutex_t lock
    PoolJob* jobs
    bint closed              # the loop takes no more jobs
    # Jobs submitted whose completion was not collected, and those for each directory; used by the loop only.
    int64_t owed
    int64_t[STORES_MOST] owed_in
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
    # A thread of the pool, or one that may start. With the lock of its line.
    pthread_cond_t wake
    Sleeper* next
    bint asleep              # in the list

cdef struct ReadLine:
    # The reads of one ledger directory that wait for its threads.
    pthread_mutex_t lock     # guards the queues and the list of sleepers
    Sleeper* asleep          # the threads without a job; the last to fall asleep, whose memory is warm, is called first
    ReadQueue* first         # queues that are not empty, in turn
    ReadQueue* last
    ReadQueue ahead          # the queue of read-ahead jobs
    int64_t queued           # atomic; written with the lock
    bint stopping

cdef struct ReadPool:
    Storage* stores
    Loads loads
    ReadLine[STORES_MOST] lines
    Sleeper sleepers[READ_THREADS_MAX]
    int64_t threads          # atomic; that took a sleeper
    int64_t queued           # atomic; in all lines
    int64_t queued_max
    int64_t jobs             # atomic; jobs that wait, are served, or were not collected by their loop yet
    int64_t served           # atomic

# Submit a job to read ahead if `answer.ahead` asks for it; never waits.
cdef void pool_read_ahead(ReadPool* pool, int64_t ledger, Answer* answer) noexcept nogil
# Append a job to this queue, which has jobs of one directory only and must stay in place until the job is back.
# TOO_MANY_REQUESTS if too many jobs wait in total, or are owed to the inbox, and more than an equal part of them are of
# this directory; fences, high priority, and the only job of its queue have higher limits. The inbox gets the job back
# with its answer, and owns it then (`pool_free`).
cdef Status pool_submit(ReadPool* pool, const ReadRequest* request, ReadQueue* queue, Inbox* inbox) noexcept nogil
# Take back the jobs of a directory's queue that no thread has begun, because nobody waits for them any more. Return
# them linked by `next`, for the caller to free and to take off what the inbox is owed.
cdef PoolJob* pool_withdraw(ReadPool* pool, uint32_t directory, ReadQueue* queue) noexcept nogil
# Free a job whose answer was released. Any thread.
cdef void pool_free(ReadPool* pool, PoolJob* job) noexcept nogil

cdef inline uint32_t line_number(const ReadPool* pool, int64_t ledger) noexcept nogil:
    return <uint32_t> (<uint64_t> ledger % pool.stores.count)

cdef inline void no_longer_owed(const ReadPool* pool, Inbox* inbox, const PoolJob* job) noexcept nogil:
    inbox.owed -= 1
    inbox.owed_in[line_number(pool, job.request.ledger)] -= 1

cdef class ReadPoolWorkers:
    cdef ReadPool pool
    cdef object stores_room
