"""Writing responses that were delayed, in the order in which they became ready."""
from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free

from bookie._fast.base.op_stats cimport OpStats, op_note
from bookie._fast.base.sync cimport bk_load, bk_load_pointer, bk_store, now_ns, pthread_mutex_lock, pthread_mutex_unlock
from bookie._fast.base.types cimport CLOSED, Status
from bookie._fast.server.ack_queue cimport Ack, AckQueue
from bookie._fast.server.acks cimport ack_next, acks_free
from bookie._fast.server.connection cimport Conn, conn_release
from bookie._fast.server.dispatch cimport dispatch_ack, dispatch_poll, dispatch_read
from bookie._fast.server.gate cimport gate_answer
from bookie._fast.server.long_polls cimport Poll, polls_next, polls_pass
from bookie._fast.server.loop_ops cimport LOOP_FENCE_WAIT, LOOP_READ_QUEUED, op_of, op_took
from bookie._fast.server.membership cimport close_conn, close_failed
from bookie._fast.server.output cimport mark_dirty
from bookie._fast.server.policy cimport PolicyJob, policy_collect, policy_free
from bookie._fast.server.rejections cimport OUT_OF_MEMORY
from bookie._fast.server.turns cimport turns_enter
from bookie._fast.store.read_pool cimport PoolJob, no_longer_owed, pool_free
from bookie._fast.wire.request cimport ADD_ENTRY

cdef enum:
    ACKS_MOST = 4096             # of a journal in a round, as others wait for it
    POLLS_MOST = 256             # the same of long polls, whose responses have an entry each


cdef void answered(IoLoop* loop, Conn* conn, Status status) noexcept nogil:
    """Finish a delayed response: it was appended to the connection's output, or that failed."""
    if conn.fd >= 0:
        if status == CLOSED:
            close_failed(loop, conn, OUT_OF_MEMORY)
        else:
            mark_dirty(loop, conn)
    conn_release(conn)


cdef bint serve_queue(IoLoop* loop, AckQueue* queue, OpStats* adds, const int64_t* published) noexcept nogil:
    """Answer published Acks; return whether others wait. Adds that came in together are recorded together."""
    cdef uint64_t last = queue.head + ACKS_MOST
    cdef Ack* ack
    cdef int64_t group, now
    cdef int64_t begun = 0
    cdef int64_t together = 0
    if queue.head == queue.tail:
        return False
    group = bk_load(published)
    ack = ack_next(queue, group)
    if ack == NULL:
        return True
    if loop.stalled and loop.limits.adds_in_progress_max:
        loop.more_acks = True    # connections that this makes room for continue at once
    now = now_ns()
    while ack != NULL:
        if ack.op != ADD_ENTRY:
            op_took(&loop.ops, op_of(ack.op, 0) if ack.read == NULL else LOOP_FENCE_WAIT, True, now - ack.begun)
        elif ack.begun == begun:
            together += 1
        else:
            if together:
                op_note(adds, now - begun, together)
            begun, together = ack.begun, 1
        answered(loop, ack.conn, dispatch_ack(loop, ack))
        if queue.head == last:
            loop.more_acks = True
            break
        ack = ack_next(queue, group)
    if together:
        op_note(adds, now - begun, together)
    return queue.head != queue.tail


cdef void serve_acks(IoLoop* loop) noexcept nogil:
    cdef uint32_t i
    cdef bint waiting = False
    loop.more_acks = False
    if loop.waker.waiting_written:
        for i in range(loop.stores.journal_count):
            waiting = serve_queue(loop, &loop.written[i], &loop.ops.adds[i],
                                  &loop.stores.journals[i].written_group) or waiting
        if not waiting:
            bk_store(&loop.waker.waiting_written, 0)
    if not loop.waker.waiting:
        return
    waiting = False
    for i in range(loop.stores.journal_count):
        waiting = serve_queue(loop, &loop.acks[i], &loop.ops.adds[i], &loop.stores.journals[i].synced_group) or waiting
    if not waiting:
        bk_store(&loop.waker.waiting, 0)


cdef void drop_acks(AckQueue* queue) noexcept nogil:
    cdef Ack* ack = ack_next(queue, INT64_MAX)
    while ack != NULL:
        free(ack.read)
        conn_release(ack.conn)
        ack = ack_next(queue, INT64_MAX)
    acks_free(queue)


cdef void serve_inbox(IoLoop* loop) noexcept nogil:
    cdef PoolJob* job
    cdef PoolJob* following
    if bk_load_pointer(<void**> &loop.inbox.jobs) == NULL:
        return
    pthread_mutex_lock(&loop.inbox.lock)
    job = loop.inbox.jobs
    loop.inbox.jobs = NULL
    pthread_mutex_unlock(&loop.inbox.lock)
    while job != NULL:
        following = job.next
        no_longer_owed(loop.pool, &loop.inbox, job)
        op_took(&loop.ops, LOOP_READ_QUEUED, True, job.request.queued_ns)
        answered(loop, <Conn*> job.request.owner, dispatch_read(loop, <Conn*> job.request.owner, job))
        pool_free(loop.pool, job)
        job = following


cdef void serve_policy(IoLoop* loop) noexcept nogil:
    """Write the responses of Python, then continue with the frames that waited for them."""
    cdef PolicyJob* job
    cdef PolicyJob* following
    cdef Conn* conn
    if bk_load_pointer(<void**> &loop.policy_done.head) == NULL:
        return
    job = policy_collect(&loop.policy_done)
    while job != NULL:
        following = job.next
        conn = <Conn*> job.owner
        loop.stats.policy_answers += 1
        op_took(&loop.ops, op_of(job.op, 0), job.answer_size != 0, now_ns() - job.begun)
        if gate_answer(loop, conn, job) == CLOSED:
            if conn.why:
                close_failed(loop, conn, OUT_OF_MEMORY)
            else:
                close_conn(loop, conn)       # Python has decided that, and logs it
        policy_free(job)
        if conn.fd >= 0:
            turns_enter(loop, conn)
            mark_dirty(loop, conn)
        conn_release(conn)
        job = following


cdef void serve_polls(IoLoop* loop) noexcept nogil:
    """Answer long polls that have ended, at the end of the loop all of them. The rounds that this takes send the
    responses, and serve others. No further polls are ended meanwhile: these could come before.
    """
    cdef Poll poll
    cdef int left = POLLS_MOST
    if loop.polls.ended.first == NULL:
        polls_pass(&loop.polls, INT64_MAX if bk_load(&loop.stopping) else loop.now)
    while left and polls_next(&loop.polls, &poll):
        answered(loop, <Conn*> poll.request.owner, dispatch_poll(loop, <Conn*> poll.request.owner, &poll))
        left -= 1
