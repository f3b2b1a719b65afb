"""Cold reads wait here for a thread; the results go back to the loop that asked."""
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from bookie._fast.base.bounds cimport READ_THREADS_MAX
from bookie._fast.base.sync cimport (
    bk_add,
    bk_add_relaxed,
    bk_load,
    bk_load_pointer,
    bk_store,
    bk_store_pointer,
    cond_init,
    now_ns,
    pthread_cond_signal,
    pthread_cond_wait,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)
from bookie._fast.base.types cimport OK, TOO_MANY_REQUESTS
from bookie._fast.base.waker cimport waker_wake
from bookie._fast.index.location cimport IndexReader, index_reader, index_reader_free
from bookie._fast.store.gather cimport answer_begin, answer_release
from bookie._fast.store.loads cimport loads_init
from bookie._fast.store.read_path cimport Reading, answer_from_disk, learn_lac, read_ahead
from bookie._fast.store.storage cimport StorageEngine
from bookie._fast.store.stores cimport STORES_MOST
from bookie._fast.wire.request cimport URGENT


cdef enum:
    AT_WORK = 256                # jobs in service, or waiting for their loop, allowed while the queue is full


cdef int64_t jobs_most(int64_t queued_max, uint32_t directories) noexcept nogil:
    """Return how many jobs there may be. Several directories, each with a part of its own, may have twice as many."""
    return (queued_max + queued_max // 4 + AT_WORK) * (1 if directories == 1 else 2)


cdef void pool_free(ReadPool* pool, PoolJob* job) noexcept nogil:
    bk_add(&pool.jobs, -1)
    free(job)


cdef void pool_read_ahead(ReadPool* pool, int64_t ledger, Answer* answer) noexcept nogil:
    cdef ReadRequest request
    if answer.ahead < 0:
        return
    memset(&request, 0, sizeof(request))
    request.ledger = ledger
    request.entry = answer.ahead
    answer.ahead = -1
    # If too many jobs wait, reading ahead is dropped.
    pool_submit(pool, &request, &pool.lines[line_number(pool, ledger)].ahead, NULL)


cdef void line_up(ReadLine* line, ReadQueue* queue) noexcept nogil:
    """Put a queue that is not empty at the end of the line. With the lock."""
    queue.next = NULL
    queue.previous = line.last
    if line.last == NULL:
        line.first = queue
    else:
        line.last.next = queue
    line.last = queue


cdef void leave_line(ReadLine* line, ReadQueue* queue) noexcept nogil:
    """Remove a queue from the line. With the lock."""
    if queue.previous != NULL:
        queue.previous.next = queue.next
    else:
        line.first = queue.next
    if queue.next != NULL:
        queue.next.previous = queue.previous
    else:
        line.last = queue.previous


cdef void count_queued(ReadPool* pool, ReadLine* line, int64_t more) noexcept nogil:
    """With the lock."""
    bk_store(&line.queued, line.queued + more)
    bk_add(&pool.queued, more)


cdef void push(ReadPool* pool, ReadLine* line, ReadQueue* queue, PoolJob* job) noexcept nogil:
    """Append a job to a queue. With the lock."""
    if queue.first == NULL:
        bk_store_pointer(&queue.first, job)   # its loop looks without the lock
        line_up(line, queue)
    else:
        (<PoolJob*> queue.last).next = job
    queue.last = job
    count_queued(pool, line, 1)


cdef PoolJob* pop(ReadPool* pool, ReadLine* line) noexcept nogil:
    """Take the oldest job of the queue whose turn it is, or NULL. With the lock."""
    cdef ReadQueue* queue = line.first
    cdef PoolJob* job
    if queue == NULL:
        return NULL
    job = <PoolJob*> queue.first
    leave_line(line, queue)
    bk_store_pointer(&queue.first, job.next)
    if job.next != NULL:
        line_up(line, queue)
    count_queued(pool, line, -1)
    return job


cdef Sleeper* call(ReadLine* line) noexcept nogil:
    """Take the thread that fell asleep last, which the caller wakes without the lock; NULL if none sleeps. With the
    lock.
    """
    cdef Sleeper* sleeper = line.asleep
    if sleeper != NULL:
        line.asleep = sleeper.next
        sleeper.asleep = False
    return sleeper


cdef void sleep(ReadLine* line, Sleeper* sleeper) noexcept nogil:
    """Wait until called, or a little less. With the lock."""
    cdef Sleeper** at = &line.asleep
    sleeper.next = line.asleep
    sleeper.asleep = True
    line.asleep = sleeper
    pthread_cond_wait(&sleeper.wake, &line.lock)
    if sleeper.asleep:                   # nobody called: the wait ended by itself, or the pool stops
        while at[0] != sleeper:
            at = &at[0].next
        at[0] = sleeper.next
        sleeper.asleep = False


cdef inline int64_t widened(int64_t most, bint urgent, bint first) noexcept nogil:
    """Return a limit raised by a quarter for urgent jobs, or by an eighth for the first job of a queue."""
    return most + (most // 4 if urgent else most // 8 if first else 0)


cdef inline bint exceeds(const ReadPool* pool, int64_t total, int64_t own, int64_t most) noexcept nogil:
    """Return whether no more jobs may come. A directory may have its equal part of them in any case, so that one that
    hangs does not use up that of others.
    """
    return total >= most and own >= most // <int64_t> pool.stores.count


cdef Status refused(Inbox* inbox) noexcept nogil:
    if inbox != NULL:
        inbox.refused += 1
    return TOO_MANY_REQUESTS


cdef Status pool_submit(ReadPool* pool, const ReadRequest* request, ReadQueue* queue, Inbox* inbox) noexcept nogil:
    cdef uint32_t at = line_number(pool, request.ledger)
    cdef ReadLine* line = &pool.lines[at]
    cdef PoolJob* job
    cdef Sleeper* sleeper = NULL
    cdef Status status = OK
    cdef bint urgent = request.flags & URGENT != 0
    cdef bint first = inbox != NULL and bk_load_pointer(&queue.first) == NULL
    if (inbox != NULL and not urgent and inbox.owed_max
            and exceeds(pool, inbox.owed, inbox.owed_in[at], widened(inbox.owed_max, False, first))):
        return refused(inbox)
    if exceeds(pool, bk_load(&pool.queued), bk_load(&line.queued), widened(pool.queued_max, urgent, first)):
        return refused(inbox)
    if bk_load(&pool.jobs) >= jobs_most(pool.queued_max, pool.stores.count):
        return refused(inbox)
    job = <PoolJob*> malloc(sizeof(PoolJob))
    if job == NULL:
        return refused(inbox)
    bk_add(&pool.jobs, 1)
    job.request = request[0]
    job.inbox = inbox
    job.queued = now_ns()
    job.next = NULL
    pthread_mutex_lock(&line.lock)
    if line.stopping:
        status = TOO_MANY_REQUESTS
    else:
        push(pool, line, queue, job)
        sleeper = call(line)
    pthread_mutex_unlock(&line.lock)
    if sleeper != NULL:
        pthread_cond_signal(&sleeper.wake)    # without the lock, which it would wait for at once
    if status != OK:
        pool_free(pool, job)
    elif inbox != NULL:
        inbox.owed += 1
        inbox.owed_in[at] += 1
    return status


cdef PoolJob* pool_withdraw(ReadPool* pool, uint32_t directory, ReadQueue* queue) noexcept nogil:
    cdef ReadLine* line = &pool.lines[directory]
    cdef PoolJob* first
    cdef PoolJob* job
    if bk_load_pointer(&queue.first) == NULL:
        return NULL              # nobody adds to it meanwhile
    pthread_mutex_lock(&line.lock)
    first = job = <PoolJob*> queue.first
    if first != NULL:
        leave_line(line, queue)
        bk_store_pointer(&queue.first, NULL)
    while job != NULL:
        count_queued(pool, line, -1)
        job = job.next
    pthread_mutex_unlock(&line.lock)
    return first


cdef PoolJob* next_job(ReadPool* pool, ReadLine* line, Sleeper* sleeper) noexcept nogil:
    """Wait for a job; NULL if the pool stops and none is left."""
    cdef PoolJob* job
    pthread_mutex_lock(&line.lock)
    while line.first == NULL and not line.stopping:
        sleep(line, sleeper)
    job = pop(pool, line)
    pthread_mutex_unlock(&line.lock)
    return job


cdef void deliver(PoolJob* job) noexcept nogil:
    cdef Inbox* inbox = job.inbox
    pthread_mutex_lock(&inbox.lock)
    if inbox.closed:
        answer_release(&job.answer)
    job.next = inbox.jobs
    bk_store_pointer(<void**> &inbox.jobs, job)      # its loop looks without the lock
    pthread_mutex_unlock(&inbox.lock)
    waker_wake(inbox.waker)


cdef void serve(Reading* reading, PoolJob* job) noexcept nogil:
    if job.request.learns:
        answer_begin(&job.answer, &job.request)
        job.answer.status = learn_lac(reading, job.request.ledger)
    else:
        answer_from_disk(reading, &job.request, &job.answer)


cdef void pool_run(ReadPool* pool, ReadLine* line, Sleeper* sleeper, IndexReader* reader) noexcept nogil:
    cdef PoolJob* job = next_job(pool, line, sleeper)
    cdef Reading reading
    reading.stores = pool.stores
    reading.loads = &pool.loads
    reading.index = reader
    while job != NULL:
        if job.inbox == NULL:
            read_ahead(&reading, job.request.ledger, job.request.entry)
            pool_free(pool, job)
        else:
            job.request.queued_ns = now_ns() - job.queued
            serve(&reading, job)
            pool_read_ahead(pool, job.request.ledger, &job.answer)
            bk_add_relaxed(&pool.served, 1)
            deliver(job)
        job = next_job(pool, line, sleeper)


cdef void stop_line(ReadLine* line) noexcept nogil:
    """Wake all threads of the line. From now on, nothing is added to its queues."""
    cdef Sleeper* sleeper
    pthread_mutex_lock(&line.lock)
    line.stopping = True
    sleeper = line.asleep
    while sleeper != NULL:
        pthread_cond_signal(&sleeper.wake)
        sleeper = sleeper.next
    pthread_mutex_unlock(&line.lock)


def bytes_max(int64_t queue_max, uint32_t directories) -> int:
    """Return the memory for reads that wait for the disks, and for their results until a loop takes them."""
    return jobs_most(queue_max, directories) * sizeof(PoolJob)


cdef class ReadPoolWorkers:
    """The read pool; `run` is the body of each of its threads."""

    def __cinit__(self):
        cdef int i
        for i in range(STORES_MOST):
            pthread_mutex_init(&self.pool.lines[i].lock, NULL)
        for i in range(READ_THREADS_MAX):
            cond_init(&self.pool.sleepers[i].wake)
        loads_init(&self.pool.loads)

    def __init__(self, StorageEngine stores, *, queue_max: int):
        self.stores_room = stores
        self.pool.stores = stores.stores
        self.pool.queued_max = queue_max

    def run(self, uint32_t directory) -> None:
        """Serve reads of ledger directory number `directory` until `stop`, with an index reader of the thread's own."""
        cdef ReadLine* line = &self.pool.lines[directory]
        cdef IndexReader* reader
        cdef int64_t thread = bk_add(&self.pool.threads, 1) - 1
        if thread >= READ_THREADS_MAX:
            raise OSError(f"a read pool has at most {READ_THREADS_MAX} threads; lower numReadWorkerThreads")
        with nogil:
            reader = index_reader(self.pool.stores.stores[directory].index)
        if reader == NULL:
            raise OSError("no reader of the location index is left for a read thread; lower numReadWorkerThreads")
        with nogil:
            pool_run(&self.pool, line, &self.pool.sleepers[thread], reader)
            index_reader_free(reader)

    def stop(self) -> None:
        """Serve the queued reads, except those ahead of readers, then end the threads."""
        cdef PoolJob* job
        cdef PoolJob* following
        cdef uint32_t i
        with nogil:
            for i in range(self.pool.stores.count):
                stop_line(&self.pool.lines[i])
                job = pool_withdraw(&self.pool, i, &self.pool.lines[i].ahead)
                while job != NULL:
                    following = job.next
                    pool_free(&self.pool, job)
                    job = following

    def stats(self) -> dict[str, int]:
        return {"read_pool_queued": bk_load(&self.pool.queued), "read_pool_served": bk_load(&self.pool.served),
                "read_pool_jobs": bk_load(&self.pool.jobs)}
