"""The queue of requests that Python answers. Loops submit and collect; Python threads take and answer."""
cimport cython
from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from bookie._fast.base.sync cimport (
    bk_load,
    bk_store_pointer,
    cond_init,
    pthread_cond_broadcast,
    pthread_cond_signal,
    pthread_cond_wait,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)
from bookie._fast.base.types cimport OK, TOO_MANY_REQUESTS
from bookie._fast.base.waker cimport waker_wake
from bookie._fast.server.users cimport MAY_ALL, AuthenticatedUser, user_hold, user_release
from bookie._fast.wire.request cimport AUTH

import socket

cdef enum:
    # Offsets in a sockaddr_in and a sockaddr_in6.
    PORT_AT = 2
    IPV4_AT = 4
    IPV6_AT = 8

NOTHING = POLICY_NOTHING
AUTHENTICATED = POLICY_AUTHENTICATED
CLOSE = POLICY_CLOSE
TURN_AWAY = POLICY_TURN_AWAY
REQUEST = POLICY_REQUEST
UPGRADED = POLICY_UPGRADED
CLOSED = POLICY_CLOSED
CLEAR = POLICY_CLEAR
UPGRADED_KNOWN = POLICY_UPGRADED_KNOWN
LOGINS = BACKLOG_LOGINS
REQUESTS = BACKLOG_REQUESTS


cdef void policy_inbox_init(PolicyInbox* inbox, Waker* waker) noexcept nogil:
    pthread_mutex_init(&inbox.lock, NULL)
    inbox.head = inbox.tail = NULL
    inbox.waker = waker


cdef PolicyJob* policy_job(const uint8_t* frame, uint32_t size) noexcept nogil:
    cdef PolicyJob* job = <PolicyJob*> calloc(1, sizeof(PolicyJob) + size)
    if job == NULL:
        return NULL
    if size:
        memcpy(job + 1, frame, size)
    job.size = size
    return job


cdef int64_t policy_share(const PolicyQueue* queue) noexcept nogil:
    return max(queue.jobs_max // SHARE_OF_CONNECTION, <int64_t> 1)


cdef Status policy_submit(PolicyQueue* queue, PolicyJob* job) noexcept nogil:
    cdef PolicyBacklog* backlog
    cdef bint fits
    job.backlog = BACKLOG_LOGINS if job.kind == POLICY_CLOSED or job.op == AUTH else BACKLOG_REQUESTS
    backlog = &queue.backlogs[job.backlog]
    pthread_mutex_lock(&queue.lock)
    fits = job.kind == POLICY_CLOSED or (
        backlog.jobs < queue.jobs_max and backlog.bytes + job.size <= queue.bytes_max and not queue.stopping)
    if fits:
        job.queue = queue
        job.next = NULL
        if backlog.tail != NULL:
            backlog.tail.next = job
        else:
            backlog.head = job
        backlog.tail = job
        if job.kind != POLICY_CLOSED:
            backlog.jobs += 1
            backlog.bytes += job.size
        pthread_cond_signal(&backlog.filled)
    else:
        queue.refused += 1
    pthread_mutex_unlock(&queue.lock)
    return OK if fits else TOO_MANY_REQUESTS


cdef PolicyJob* policy_collect(PolicyInbox* inbox) noexcept nogil:
    cdef PolicyJob* job
    pthread_mutex_lock(&inbox.lock)
    job = inbox.head
    inbox.head = inbox.tail = NULL
    pthread_mutex_unlock(&inbox.lock)
    return job


cdef void policy_free(PolicyJob* job) noexcept nogil:
    cdef PolicyQueue* queue = job.queue
    if queue != NULL and job.kind != POLICY_CLOSED:
        pthread_mutex_lock(&queue.lock)
        queue.backlogs[job.backlog].jobs -= 1
        queue.backlogs[job.backlog].bytes -= job.size
        queue.served += 1
        pthread_mutex_unlock(&queue.lock)
    user_release(job.user)
    free(job.answer)
    free(job)


cdef PolicyJob* next_job(PolicyQueue* queue, PolicyBacklog* backlog) noexcept nogil:
    """Wait for a job of the backlog; return NULL once the queue is stopped and the backlog is empty."""
    cdef PolicyJob* job
    pthread_mutex_lock(&queue.lock)
    while backlog.head == NULL and not queue.stopping:
        pthread_cond_wait(&backlog.filled, &queue.lock)
    job = backlog.head
    if job != NULL:
        backlog.head = job.next
        if backlog.head == NULL:
            backlog.tail = NULL
        job.next = NULL
    pthread_mutex_unlock(&queue.lock)
    return job


cdef void deliver(PolicyJob* job) noexcept nogil:
    cdef PolicyInbox* inbox = job.inbox
    pthread_mutex_lock(&inbox.lock)
    job.next = NULL
    if inbox.tail != NULL:
        inbox.tail.next = job
    else:
        bk_store_pointer(<void**> &inbox.head, job)      # its loop reads this without the lock
    inbox.tail = job
    # Under the lock: once the loop can see the job, it may end at any time.
    waker_wake(inbox.waker)
    pthread_mutex_unlock(&inbox.lock)


cdef str address(const uint8_t* peer):
    """Return `host:port` of a sockaddr; empty if the peer had disconnected before it was looked up."""
    cdef unsigned short family
    memcpy(&family, peer, sizeof(family))
    port = peer[PORT_AT] << 8 | peer[PORT_AT + 1]
    if family == socket.AF_INET:
        return f"{socket.inet_ntop(socket.AF_INET, <bytes> (<const char*> peer + IPV4_AT)[:4])}:{port}"
    if family == socket.AF_INET6:
        return f"[{socket.inet_ntop(socket.AF_INET6, <bytes> (<const char*> peer + IPV6_AT)[:16])}]:{port}"
    return ""


@cython.no_gc_clear
cdef class Task:
    """A job taken by Python: a request to answer, or an event.

    `answer` gives it back. A task that is dropped without an answer closes its connection, so that nothing waits for
    it for ever.
    """
    cdef PolicyJob* job
    cdef readonly int kind
    cdef readonly int protocol
    cdef readonly int operation
    cdef readonly object session
    cdef readonly bytes frame
    cdef readonly str peer

    def answer(self, const unsigned char[::1] body not None, int action, AuthenticatedUser user=None,
               int may=MAY_ALL) -> None:
        """Send `body` (of one frame, without its length; nothing if empty) and then do `action`. Call it once.

        AUTHENTICATED logs the connection in as `user`, or as an unnamed one if that is None, with the rights `may`.
        Without a user, a connection that has one already, and proves nothing new, keeps it with its rights.
        """
        cdef PolicyJob* job = self.job
        cdef uint32_t size = <uint32_t> body.shape[0]
        if job == NULL:
            raise RuntimeError("this task has been answered already")
        if size:
            job.answer = <uint8_t*> malloc(size)
            if job.answer == NULL:
                raise MemoryError
            memcpy(job.answer, &body[0], size)
            job.answer_size = size
        job.may = <uint8_t> may
        if user is not None:
            job.user = user_hold(user.user)
        self.give_back(action)

    @property
    def answered(self) -> bool:
        """Whether Python has given it back; events need no answer."""
        return self.job == NULL

    cdef void give_back(self, int action) noexcept:
        cdef PolicyJob* job = self.job
        self.job = NULL
        if job == NULL:
            return
        job.action = <uint8_t> action
        with nogil:
            deliver(job)

    def __dealloc__(self):
        self.give_back(POLICY_CLOSE)


cdef class PolicyRequests:
    """The queue; created before the loops and closed after them. Any number of threads call `take`."""

    def __cinit__(self):
        pthread_mutex_init(&self.queue.lock, NULL)
        cond_init(&self.queue.backlogs[<int> BACKLOG_LOGINS].filled)
        cond_init(&self.queue.backlogs[<int> BACKLOG_REQUESTS].filled)

    def __init__(self, *, jobs_max: int, bytes_max: int, frame_bytes_max: int):
        self.queue.jobs_max = jobs_max
        self.queue.bytes_max = bytes_max
        self.queue.frame_bytes_max = frame_bytes_max

    def take(self, int backlog) -> Task | None:
        """Wait for the next task of backlog LOGINS or REQUESTS; None once the queue is stopped and that is empty."""
        cdef PolicyJob* job
        cdef Task task
        if backlog not in (LOGINS, REQUESTS):
            raise ValueError(f"backlog is {backlog}; it must be LOGINS ({LOGINS}) or REQUESTS ({REQUESTS})")
        with nogil:
            job = next_job(&self.queue, &self.queue.backlogs[backlog])
        if job == NULL:
            return None
        task = Task.__new__(Task)
        task.kind = job.kind
        task.session = job.session
        if job.kind == POLICY_CLOSED:
            policy_free(job)
            return task
        task.job = job
        task.protocol = job.protocol
        task.operation = job.op
        task.frame = (<const char*> (job + 1))[:job.size]
        task.peer = address(job.peer)
        return task

    def stop(self) -> None:
        """Let the threads end once everything is taken. Any thread."""
        with nogil:
            pthread_mutex_lock(&self.queue.lock)
            self.queue.stopping = True
            pthread_cond_broadcast(&self.queue.backlogs[<int> BACKLOG_LOGINS].filled)
            pthread_cond_broadcast(&self.queue.backlogs[<int> BACKLOG_REQUESTS].filled)
            pthread_mutex_unlock(&self.queue.lock)

    def stats(self) -> dict[str, int]:
        return {
            "policy_queued":
                self.queue.backlogs[<int> BACKLOG_LOGINS].jobs + self.queue.backlogs[<int> BACKLOG_REQUESTS].jobs,
            "policy_queued_bytes":
                self.queue.backlogs[<int> BACKLOG_LOGINS].bytes + self.queue.backlogs[<int> BACKLOG_REQUESTS].bytes,
            "policy_served": self.queue.served,
            "policy_refused": self.queue.refused,
            "policy_sessions": bk_load(&self.queue.sessions),
        }

    def __dealloc__(self):
        cdef PolicyJob* job
        cdef int backlog
        for backlog in range(BACKLOGS):
            while self.queue.backlogs[backlog].head != NULL:
                job = self.queue.backlogs[backlog].head
                self.queue.backlogs[backlog].head = job.next
                free(job.answer)
                free(job)
