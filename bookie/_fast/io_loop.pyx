"""The loop: wait and take in; then acknowledge what was synced, write, and tell the journals."""
from libc.errno cimport errno
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from bookie._fast.access_log cimport AccessLogRoom
from bookie._fast.acks cimport ack_next, acks_free
from bookie._fast.batch_stats cimport batch_view
from bookie._fast.complaints cimport OUT_OF_MEMORY, complaints_drain, complaints_init
from bookie._fast.connection cimport Conn, conn_goes_on
from bookie._fast.directory_ops cimport directories_round, directory_ops_new, directory_view
from bookie._fast.dispatch cimport dispatch_ack, dispatch_poll, dispatch_read
from bookie._fast.epoll cimport (
    EPOLL_CLOEXEC,
    EPOLL_CTL_ADD,
    EPOLLERR,
    EPOLLHUP,
    EPOLLIN,
    epoll_create1,
    epoll_ctl,
    epoll_event,
    epoll_wait,
)
from bookie._fast.fatal cimport fatal_is_set
from bookie._fast.gate cimport gate_answer
from bookie._fast.gather cimport answer_release
from bookie._fast.intake cimport receive, serve_held
from bookie._fast.journal cimport journal_commit, journal_idle, journal_kick
from bookie._fast.journal_state cimport Journal
from bookie._fast.long_polls cimport Poll, polls_free, polls_init, polls_next, polls_pass, polls_timeout_ms
from bookie._fast.loop_ops cimport (
    LOOP_CHANNEL_WRITE,
    LOOP_FENCE_WAIT,
    LOOP_READ_QUEUED,
    op_of,
    op_took,
    ops_free,
    ops_init,
    ops_round,
    ops_view,
)
from bookie._fast.loop_state cimport HANDSHAKE_TICK_MS, INPUT_BYTES, SEALED_BYTES, Ack, AckQueue
from bookie._fast.membership cimport (
    accept_some,
    arm,
    close_failed,
    close_conn,
    close_late,
    close_revoked,
    flush,
    mark_dirty,
    release,
    take_handed,
)
from bookie._fast.net_limits cimport NetLimitsRoom
from bookie._fast.notices cimport BOARD_MOST
from bookie._fast.op_stats cimport OpStats, op_note
from bookie._fast.policy cimport PolicyJob, PolicyRoom, policy_collect, policy_free, policy_inbox_init
from bookie._fast.read_pool cimport Inbox, PoolJob, ReadPoolRoom, pool_free
from bookie._fast.request cimport ADD_ENTRY
from bookie._fast.slow_readers cimport settle, settle_all
from bookie._fast.storage cimport StoresRoom, stores_request_flush
from bookie._fast.sync cimport (
    bk_load,
    bk_load_pointer,
    bk_store,
    now_ns,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)
from bookie._fast.tls cimport TlsServerRoom
from bookie._fast.types cimport CLOSED, Status
from bookie._fast.upgrade cimport drop_moved, expire_handshakes, move_on, take_moved
from bookie._fast.waker cimport waker_clear, waker_init, waker_wake
from bookie._fast.write_cache cimport half_taken

cdef extern from "<unistd.h>" nogil:
    int c_close "close"(int) noexcept

cdef extern from "<fcntl.h>" nogil:
    int c_open "open"(const char*, int) noexcept
    int O_RDONLY
    int O_CLOEXEC

cdef enum:
    EVENTS = 256
    TICK_MS = 10                 # while adds wait for room
    INLINE_SYNC_NS = 400000      # a journal slower than this is never synced on a loop


cdef void answered(IoLoop* loop, Conn* conn, Status status) noexcept nogil:
    """An awaited answer was written to the connection's output, or could not be."""
    if conn.fd >= 0:
        if status == CLOSED:
            close_failed(loop, conn, OUT_OF_MEMORY)
        else:
            mark_dirty(loop, conn)
    release(conn)


cdef bint serve_queue(IoLoop* loop, AckQueue* queue, OpStats* adds, const int64_t* published) noexcept nogil:
    """Answer what was published; whether more waits. Adds that came in together are noted together."""
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
        ack = ack_next(queue, group)
    if together:
        op_note(adds, now - begun, together)
    return queue.head != queue.tail


cdef void serve_acks(IoLoop* loop) noexcept nogil:
    cdef uint32_t i
    cdef bint waiting = False
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
        release(ack.conn)
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
        loop.inbox.owed -= 1
        op_took(&loop.ops, LOOP_READ_QUEUED, True, job.request.queued_ns)
        answered(loop, <Conn*> job.request.owner, dispatch_read(loop, <Conn*> job.request.owner, job))
        pool_free(loop.pool, job)
        job = following


cdef void serve_policy(IoLoop* loop) noexcept nogil:
    """What Python answered; then go on with the frames that waited for it."""
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
            if conn.unaffordable or conn.why:
                close_failed(loop, conn, OUT_OF_MEMORY)
            else:
                close_conn(loop, conn)       # as Python decided, which says so itself
        policy_free(job)
        if conn.fd >= 0 and not conn.choked:
            serve_held(loop, conn)
        if conn.fd >= 0:
            mark_dirty(loop, conn)
        release(conn)
        job = following


cdef void serve_polls(IoLoop* loop) noexcept nogil:
    """Answer the reads whose wait for a LAC is over; at the end of the loop all are."""
    cdef Poll poll
    polls_pass(&loop.polls, INT64_MAX if bk_load(&loop.stopping) else loop.now)
    while polls_next(&loop.polls, &poll):
        answered(loop, <Conn*> poll.request.owner, dispatch_poll(loop, <Conn*> poll.request.owner, &poll))


cdef void retry_stalled(IoLoop* loop) noexcept nogil:
    cdef Conn* conn = loop.conns
    cdef Conn* following
    if loop.stalled == 0:
        return
    while conn != NULL:
        following = conn.next
        if conn.stalled_until and not conn.choked:
            conn.refs += 1       # serving may close it
            serve_held(loop, conn)
            if conn.fd >= 0:
                mark_dirty(loop, conn)
            release(conn)
        conn = following


cdef void note_round(IoLoop* loop, int64_t now) noexcept nogil:
    """What came in and was dealt with in this round took as long as the round so far."""
    ops_round(&loop.ops, loop.now, now)
    directories_round(loop.directories, loop.stores.count, now - loop.now)


cdef void flush_dirty(IoLoop* loop) noexcept nogil:
    """One write per connection for everything that was answered in this round.

    What was answered is noted before it is written: whoever has an answer finds it counted.
    """
    cdef Conn* conn = loop.dirty
    cdef Conn* following
    cdef Status status
    cdef int64_t started, ended
    if conn == NULL:
        return
    started = now_ns()
    note_round(loop, started)
    loop.dirty = NULL
    while conn != NULL:
        following = conn.next_dirty
        conn.dirty = False
        if conn.fd < 0:
            release(conn)
            conn = following
            continue
        status = flush(loop, conn)
        conn.refs += 1           # serving may close it
        if status == CLOSED:
            close_conn(loop, conn)
        elif conn.choked and conn_goes_on(conn):
            conn.choked = False
            serve_held(loop, conn)
            if conn.fd >= 0 and conn.pending:
                mark_dirty(loop, conn)
        if conn.pending or conn.sealed:
            settle(loop, conn)
        if not move_on(loop, conn):
            if conn.fd >= 0:
                arm(loop, conn)
            release(conn)
        conn = following
    ended = now_ns()
    op_took(&loop.ops, LOOP_CHANNEL_WRITE, True, ended - started)
    note_round(loop, ended)                      # requests that had been held back until there was room for answers


cdef void tell_journals(IoLoop* loop) noexcept nogil:
    """Groups were appended to: let the journal thread write them, or do it here when this one add is all there is."""
    cdef uint32_t i
    cdef Journal* journal
    for i in range(loop.stores.journal_count):
        if loop.appended[i] == 0:
            continue
        journal = loop.stores.journals[i]
        if (loop.appended[i] == 1 and loop.written[i].head == loop.written[i].tail
                and journal.flush_when_empty and journal_idle(journal)
                and bk_load(&journal.stats.sync_ns) < INLINE_SYNC_NS * bk_load(&journal.stats.groups)):
            loop.stats.inline_commits += 1
            journal_commit(journal, &loop.waker)
        else:
            journal_kick(journal)
        loop.appended[i] = 0


cdef void ask_for_flush(IoLoop* loop) noexcept nogil:
    """A half is as full as it should get and the other one is free: time to swap."""
    cdef uint32_t i
    cdef int64_t active
    for i in range(loop.stores.count):
        active = bk_load(&loop.stores.stores[i].active)
        if (half_taken(&loop.stores.stores[i].halves[active]) >= loop.stores.flush_bytes
                and bk_load(&loop.stores.stores[i].spare_clean)):
            stores_request_flush(loop.stores)
            return


cdef int patience_ms(const IoLoop* loop) noexcept nogil:
    """How long the loop may sleep if nothing happens; -1: for ever."""
    cdef int64_t now
    cdef int left, late
    if loop.dirty != NULL or (loop.polls.count and bk_load(&loop.stopping)):
        return 0
    if loop.polls.count == 0 and loop.late_check == 0:
        return TICK_MS if loop.stalled else HANDSHAKE_TICK_MS if loop.handshaking else -1
    now = now_ns()
    left = polls_timeout_ms(&loop.polls, now)
    if loop.late_check:
        late = <int> ((loop.late_check - now) // 1000000) + 1 if loop.late_check > now else 0
        left = late if left < 0 or late < left else left
    if loop.handshaking and (left < 0 or left > HANDSHAKE_TICK_MS):
        left = HANDSHAKE_TICK_MS
    return TICK_MS if loop.stalled and (left < 0 or left > TICK_MS) else left


cdef int wait_events(IoLoop* loop, epoll_event* events) noexcept nogil:
    """Spin a bounded while if configured, then sleep until something happens."""
    cdef int timeout = patience_ms(loop)
    cdef int n
    cdef int64_t until
    if loop.limits.spin_ns and timeout:
        until = now_ns() + loop.limits.spin_ns
        while now_ns() < until:
            n = epoll_wait(loop.epoll, events, EVENTS, 0)
            if n:
                return n
    return epoll_wait(loop.epoll, events, EVENTS, timeout)


cdef void serve_events(IoLoop* loop, epoll_event* events, int count) noexcept nogil:
    cdef int i
    cdef Conn* conn
    for i in range(count):
        if events[i].data.ptr == &loop.waker:
            waker_clear(&loop.waker)
        elif events[i].data.ptr == loop:
            if bk_load(&loop.stopping) == 0:
                accept_some(loop)
        else:
            conn = <Conn*> events[i].data.ptr
            if conn.fd < 0:
                continue
            conn.refs += 1       # the events of this round may close it
            if events[i].events & EPOLLIN:
                receive(loop, conn)
            elif events[i].events & (EPOLLERR | EPOLLHUP):
                close_conn(loop, conn)
            if conn.fd >= 0:
                mark_dirty(loop, conn)
            release(conn)


cdef bint drained(IoLoop* loop) noexcept nogil:
    """Nothing is owed to any peer."""
    cdef Conn* conn = loop.conns
    while conn != NULL:
        if conn.pending or conn.sealed or conn.refs > 1:
            return False
        conn = conn.next
    return True


cdef void close_inbox(Inbox* inbox) noexcept nogil:
    """Keep no pins: a checkpoint waits for them, and there is one more to come."""
    cdef PoolJob* job
    pthread_mutex_lock(&inbox.lock)
    inbox.closed = True
    job = inbox.jobs
    while job != NULL:
        answer_release(&job.answer)
        job = job.next
    pthread_mutex_unlock(&inbox.lock)


cdef void serve_round(IoLoop* loop, epoll_event* events, int count) noexcept nogil:
    loop.now = now_ns()
    serve_events(loop, events, count)
    take_handed(loop)
    take_moved(loop)
    serve_inbox(loop)
    serve_policy(loop)
    serve_polls(loop)
    retry_stalled(loop)
    tell_journals(loop)
    serve_acks(loop)
    flush_dirty(loop)
    settle_all(loop)
    ask_for_flush(loop)
    close_late(loop)
    close_revoked(loop)
    expire_handshakes(loop)


cdef void run(IoLoop* loop) noexcept nogil:
    cdef epoll_event events[EVENTS]
    while not fatal_is_set():
        serve_round(loop, events, wait_events(loop, events))
        if bk_load(&loop.stopping) and (bk_load(&loop.stopping) > 1 or drained(loop)):
            break
    while loop.conns != NULL:
        close_conn(loop, loop.conns)
    close_inbox(&loop.inbox)


cdef class IoLoopRoom:
    """One I/O loop; `run` is the body of its thread. The first one of a group accepts for all (`listen`)."""

    def __cinit__(self):
        memset(&self.loop, 0, sizeof(IoLoop))
        self.loop.epoll = -1
        self.loop.listener = -1
        self.loop.spare_fd = -1

    def __init__(self, StoresRoom stores, ReadPoolRoom pool, NetLimitsRoom limits, PolicyRoom policy=None,
                 TlsServerRoom tls=None, AccessLogRoom access=None):
        cdef IoLoop* loop = &self.loop
        cdef epoll_event event
        self.stores_room = stores
        self.pool_room = pool
        self.limits_room = limits
        self.policy_room = policy
        self.tls_room = tls
        self.access_room = access
        loop.stores = stores.stores
        loop.pool = &pool.pool
        loop.limits = &limits.limits
        loop.policy = &policy.queue if policy is not None else NULL
        policy_inbox_init(&loop.policy_done, &loop.waker)
        loop.epoll = epoll_create1(EPOLL_CLOEXEC)
        loop.input = <uint8_t*> malloc(INPUT_BYTES * 2)
        if access is not None:
            loop.access = access.ring()
        if tls is not None:
            loop.tls = &tls.server
            loop.encrypted = <uint8_t*> malloc(SEALED_BYTES)
        if tls is not None and loop.encrypted == NULL:
            raise MemoryError
        loop.directories = directory_ops_new(loop.stores.count)
        if (loop.epoll < 0 or loop.input == NULL or loop.directories == NULL or not waker_init(&loop.waker)
                or not ops_init(&loop.ops, loop.stores.journal_count)):
            raise OSError(errno, "cannot create an I/O loop: no descriptors or memory left")
        if loop.stores.loop_count == BOARD_MOST:
            raise ValueError(f"more than {BOARD_MOST} I/O loops")
        pthread_mutex_init(&loop.handed_lock, NULL)
        pthread_mutex_init(&loop.inbox.lock, NULL)
        loop.inbox.waker = &loop.waker
        loop.inbox.owed_max = limits.limits.pending_reads_max
        event.events = EPOLLIN
        event.data.ptr = &loop.waker
        epoll_ctl(loop.epoll, EPOLL_CTL_ADD, loop.waker.fd, &event)
        complaints_init(&loop.complaints)
        polls_init(&loop.polls, loop.stores, &loop.limits.polls, loop.stores.loop_count, &loop.waker)
        loop.stores.loops[loop.stores.loop_count] = &loop.waker
        loop.stores.loop_count += 1
        for i in range(loop.stores.journal_count):
            loop.stores.journals[i].wakers[loop.stores.journals[i].waker_count] = &loop.waker
            loop.stores.journals[i].waker_count += 1

    def listen(self, listener_fd: int, list peers) -> None:
        """Accept from `listener_fd` (non-blocking, listening) and share the connections out among `peers`."""
        cdef epoll_event event
        self.loop.listener = listener_fd
        self.loop.spare_fd = c_open("/dev/null", O_RDONLY | O_CLOEXEC)
        for peer in peers:
            self.loop.peers[self.loop.peer_count] = &(<IoLoopRoom> peer).loop
            self.loop.peer_count += 1
        event.events = EPOLLIN
        event.data.ptr = &self.loop
        if epoll_ctl(self.loop.epoll, EPOLL_CTL_ADD, listener_fd, &event) != 0:
            raise OSError(errno, "cannot poll the listening socket")

    def move_encrypted_to(self, list loops) -> None:
        """START_TLS moves this loop's connections on to `loops`, which serve TLS, in turn. Before it runs."""
        for other in loops:
            self.loop.tls_loops[self.loop.tls_loop_count] = &(<IoLoopRoom> other).loop
            self.loop.tls_loop_count += 1

    def run(self) -> None:
        """Serve until stopped or a fatal failure."""
        with nogil:
            run(&self.loop)

    def turn(self) -> None:
        """One round without a sleep, in the calling thread: for tests, of a loop that no thread runs."""
        cdef epoll_event events[EVENTS]
        with nogil:
            serve_round(&self.loop, events, epoll_wait(self.loop.epoll, events, EVENTS, 0))

    def stop(self, now: bool) -> None:
        """Finish what was begun, then end; `now`: end at once. Any thread."""
        bk_store(&self.loop.stopping, 2 if now else 1)
        waker_wake(&self.loop.waker)

    def wake(self) -> None:
        """Have it go through a round, though nothing has come. Any thread."""
        waker_wake(&self.loop.waker)

    def stats(self) -> dict[str, object]:
        stats = dict(self.loop.stats)
        del stats["batches"]
        stats["errors"] = list(self.loop.stats.errors)
        stats["turned_away"] = list(self.loop.complaints.totals)
        stats.update(<dict> self.loop.polls.stats)
        stats["refused_reads"] = self.loop.inbox.refused
        stats["reads_in_progress"] = self.loop.inbox.owed
        stats["adds_in_progress"] = sum([
            self.loop.acks[i].tail - self.loop.acks[i].head + self.loop.written[i].tail - self.loop.written[i].head
            for i in range(self.loop.stores.journal_count)])
        stats["connections_stalled"] = self.loop.stalled
        return stats

    def batches(self):
        """Batch reads answered so far, by time and size. Any thread."""
        return batch_view(&self.loop.stats.batches)

    def ops(self):
        """Times of requests: by name failed and not, and of adds by journal. Any thread."""
        return ops_view(&self.loop.ops)

    def directories(self):
        """Times of adds and reads, and sizes of entries, by ledger directory; none once closed. Any thread."""
        if self.loop.directories == NULL:
            return []
        return [directory_view(&self.loop.directories[at]) for at in range(self.loop.stores.count)]

    def complaints(self) -> list[tuple[bytes, int, int]]:
        """What peers did wrong since the last call: address (16 bytes), index of REASONS_SPOKEN, times. Any thread."""
        return complaints_drain(&self.loop.complaints)

    def close(self) -> None:
        """Free everything; the thread has ended and the read pool is stopped."""
        cdef PoolJob* job = self.loop.inbox.jobs
        cdef PoolJob* following
        cdef PolicyJob* answer = policy_collect(&self.loop.policy_done)
        cdef PolicyJob* later
        cdef Conn* conn
        while job != NULL:
            following = job.next
            answer_release(&job.answer)
            release(<Conn*> job.request.owner)
            pool_free(self.loop.pool, job)
            job = following
        self.loop.inbox.jobs = NULL
        while answer != NULL:
            later = answer.next
            release(<Conn*> answer.owner)
            policy_free(answer)
            answer = later
        take_handed(&self.loop)          # accepted for this loop when it had ended
        while self.loop.conns != NULL:
            close_conn(&self.loop, self.loop.conns)
        drop_moved(&self.loop)
        while self.loop.dirty != NULL:
            conn = self.loop.dirty
            self.loop.dirty = conn.next_dirty
            release(conn)
        for fd in (self.loop.epoll, self.loop.waker.fd, self.loop.spare_fd):
            if fd >= 0:
                c_close(fd)
        self.loop.epoll = self.loop.waker.fd = self.loop.spare_fd = -1
        for i in range(self.loop.stores.journal_count):
            drop_acks(&self.loop.acks[i])
            drop_acks(&self.loop.written[i])
        polls_free(&self.loop.polls)
        ops_free(&self.loop.ops)
        free(self.loop.directories)
        self.loop.directories = NULL
        free(self.loop.input)
        free(self.loop.encrypted)
        self.loop.input = self.loop.encrypted = NULL
