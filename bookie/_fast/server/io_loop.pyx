"""The loop: wait and receive; then acknowledge what was synced, write, and tell the journals."""
from libc.errno cimport errno
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from bookie._fast.base.epoll cimport (
    EPOLLERR,
    EPOLLHUP,
    EPOLLIN,
    EPOLLOUT,
    EPOLL_CLOEXEC,
    EPOLL_CTL_ADD,
    EPOLL_CTL_DEL,
    epoll_create1,
    epoll_ctl,
    epoll_event,
    epoll_wait,
)
from bookie._fast.base.fatal cimport fatal_is_set
from bookie._fast.base.sync cimport (
    bk_load,
    bk_store,
    now_ns,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)
from bookie._fast.base.tls cimport TlsServerContext
from bookie._fast.base.types cimport CLOSED, Status
from bookie._fast.base.waker cimport waker_clear, waker_init, waker_wake
from bookie._fast.cache.write cimport half_taken
from bookie._fast.journal.commit cimport journal_commit, journal_idle, journal_kick
from bookie._fast.journal.state cimport Journal
from bookie._fast.server.accepting cimport accept_some, end_pause, take_handed
from bookie._fast.server.access_log cimport AccessLogBuffer
from bookie._fast.server.awaited cimport drop_acks, serve_acks, serve_inbox, serve_policy, serve_polls
from bookie._fast.server.connection cimport Conn, conn_goes_on, conn_release
from bookie._fast.server.directory_ops cimport directories_round, directory_ops_new, directory_view
from bookie._fast.server.expiry cimport close_late, close_revoked
from bookie._fast.server.intake cimport take_turn
from bookie._fast.server.interest cimport arm, disarm_input, is_served
from bookie._fast.server.limits cimport PortLimits
from bookie._fast.server.long_polls cimport polls_free, polls_init, polls_timeout_ms
from bookie._fast.server.loop_ops cimport LOOP_CHANNEL_WRITE, op_took, ops_free, ops_init, ops_round, ops_view
from bookie._fast.server.loop_state cimport HANDSHAKE_TICK_MS, INPUT_BYTES, SEALED_BYTES
from bookie._fast.server.membership cimport close_conn
from bookie._fast.server.output cimport flush, mark_dirty
from bookie._fast.server.policy cimport PolicyJob, PolicyRequests, policy_collect, policy_free, policy_inbox_init
from bookie._fast.server.rejections cimport rejections_drain, rejections_init
from bookie._fast.server.slow_readers cimport settle, settle_all
from bookie._fast.server.slow_writers cimport yield_room
from bookie._fast.server.stats cimport batch_view
from bookie._fast.server.turn cimport LINES, LINE_BUSY, LINE_FRESH, LINE_NONE, LINE_STALLED, Line
from bookie._fast.server.turns cimport (
    FRESH_COST,
    ROUND_COST,
    TURN_COST,
    turn_begin,
    turns_calm,
    turns_enter,
    turns_next,
    turns_none,
    turns_wait,
)
from bookie._fast.server.upgrade cimport drop_moved, expire_handshakes, move_on, take_moved
from bookie._fast.store.gather cimport answer_release
from bookie._fast.store.notices cimport BOARD_MOST
from bookie._fast.store.read_pool cimport Inbox, PoolJob, ReadPoolWorkers, pool_free
from bookie._fast.store.storage cimport StorageEngine, store_request_room
from bookie._fast.store.stores cimport Store

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


cdef int64_t serve(IoLoop* loop, Conn* conn, int64_t most) noexcept nogil:
    """Run a turn of this connection and put it back into a line if needed; return the work done."""
    cdef int64_t begun, spent
    if not turn_begin(loop, conn, most):
        turns_wait(loop, conn, LINE_BUSY)
        return 0
    begun = conn.turn.credit
    conn.refs += 1               # serving may close it
    take_turn(loop, conn)
    spent = begun - conn.turn.credit
    if conn.fd >= 0:
        mark_dirty(loop, conn)
        if conn.stalled_until and spent == 0:
            turns_wait(loop, conn, LINE_STALLED)
        elif conn.stalled_until or (is_served(conn) and (conn.turn.more or (conn.turn.credit <= 0 and conn.held_size))):
            turns_wait(loop, conn, LINE_BUSY)
    conn_release(conn)
    return spent


cdef int64_t serve_line(IoLoop* loop, Line line, int64_t most, int64_t turns, int64_t left) noexcept nogil:
    """Run up to `turns` turns of `most` for connections in this line while some of `left` remains; return the rest."""
    cdef Conn* conn
    while left > 0 and turns > 0:
        conn = turns_next(loop, line)
        if conn == NULL:
            break
        left -= serve(loop, conn, most)
        turns -= 1
    return left


cdef void serve_turns(IoLoop* loop) noexcept nogil:
    """Serve the lines. Connections without requests until now go first, with their responses, in half of a round."""
    cdef int64_t share = ROUND_COST // 2 if loop.turns.lines[<int> LINE_BUSY].first != NULL else ROUND_COST
    cdef int64_t left = serve_line(loop, LINE_FRESH, FRESH_COST, INT64_MAX, share)
    if share < ROUND_COST:
        finish(loop)
        left += ROUND_COST - share
    left = serve_line(loop, LINE_STALLED, TURN_COST, loop.turns.lines[<int> LINE_STALLED].count, left)
    serve_line(loop, LINE_BUSY, TURN_COST, INT64_MAX, left)
    if turns_none(loop):
        turns_calm(loop)
    finish(loop)


cdef void note_round(IoLoop* loop, int64_t now) noexcept nogil:
    """Record requests that came in and were answered in this round: they took as long as the round so far."""
    ops_round(&loop.ops, loop.now, now)
    directories_round(loop.directories, loop.stores.count, now - loop.now)


cdef void flush_dirty(IoLoop* loop) noexcept nogil:
    """Write the output of each connection that has some, once.

    Responses are recorded before they are written, so a client that has its response finds it counted.
    """
    cdef Conn* conn = loop.dirty
    cdef Conn* following
    cdef Status status
    cdef int64_t started
    if conn == NULL:
        return
    started = now_ns()
    note_round(loop, started)
    loop.dirty = NULL
    while conn != NULL:
        following = conn.next_dirty
        conn.dirty = False
        if conn.fd < 0:
            if conn.turn.line == LINE_NONE:
                conn_release(conn)
            conn = following
            continue
        status = flush(loop, conn)
        conn.refs += 1           # `settle` may close it
        if status == CLOSED:
            close_conn(loop, conn)
        elif conn.choked and conn_goes_on(conn):
            conn.choked = False
            turns_enter(loop, conn)
        if conn.pending or conn.sealed:
            settle(loop, conn)
        if not move_on(loop, conn):
            if conn.fd >= 0:
                arm(loop, conn)
            conn_release(conn)
        conn = following
    op_took(&loop.ops, LOOP_CHANNEL_WRITE, True, now_ns() - started)


cdef void tell_journals(IoLoop* loop) noexcept nogil:
    """Tell the journals of new records, or commit here if a single add is all there is."""
    cdef uint32_t i
    cdef Journal* journal
    for i in range(loop.stores.journal_count):
        if loop.appended[i] == 0:
            continue
        journal = loop.stores.journals[i]
        if (loop.appended[i] == 1 and turns_none(loop) and loop.written[i].head == loop.written[i].tail
                and journal.flush_when_empty and journal_idle(journal)
                and bk_load(&journal.stats.sync_ns) < INLINE_SYNC_NS * bk_load(&journal.stats.groups)):
            loop.stats.inline_commits += 1
            journal_commit(journal, &loop.waker)
        else:
            journal_kick(journal)
        loop.appended[i] = 0


cdef void ask_for_flush(IoLoop* loop) noexcept nogil:
    """Request a flush of each store whose half is as full as it should get and whose other one is free."""
    cdef uint32_t i
    cdef Store* store
    for i in range(loop.stores.count):
        store = loop.stores.stores[i]
        if (half_taken(&store.halves[bk_load(&store.active)]) >= loop.stores.flush_bytes
                and bk_load(&store.spare_clean)):
            store_request_room(loop.stores, store)


cdef inline int sooner_ms(int left, int64_t due, int64_t now) noexcept nogil:
    """Return the shorter of `left`, which may be -1, and the time until `due`; 0 for `due` is never."""
    cdef int until = <int> ((due - now) // 1000000) + 1 if due > now else 0
    return left if due == 0 or 0 <= left < until else until


cdef int patience_ms(const IoLoop* loop) noexcept nogil:
    """Return how long the loop may sleep if nothing happens; -1 without limit."""
    cdef int64_t now
    cdef int left
    if loop.dirty != NULL or loop.more_acks or not turns_none(loop) or loop.polls.ended.first != NULL:
        return 0
    if loop.polls.count and bk_load(&loop.stopping):
        return 0
    if loop.polls.count == 0 and loop.late_check == 0 and loop.accept_due == 0:
        return TICK_MS if loop.stalled else HANDSHAKE_TICK_MS if loop.handshaking else -1
    now = now_ns()
    left = sooner_ms(polls_timeout_ms(&loop.polls, now), loop.late_check, now)
    left = sooner_ms(left, loop.accept_due, now)
    if loop.handshaking and (left < 0 or left > HANDSHAKE_TICK_MS):
        left = HANDSHAKE_TICK_MS
    return TICK_MS if loop.stalled and (left < 0 or left > TICK_MS) else left


cdef int wait_events(IoLoop* loop, epoll_event* events) noexcept nogil:
    """Spin for a bounded time if configured, then sleep until something happens."""
    cdef int timeout = patience_ms(loop)
    cdef int n
    cdef int64_t until
    if loop.limits.spin_us and timeout:
        until = now_ns() + loop.limits.spin_us * 1000
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
            else:                # or a connection that nobody accepts would wake the loop again at once, for ever
                epoll_ctl(loop.epoll, EPOLL_CTL_DEL, loop.listener, NULL)
        else:
            conn = <Conn*> events[i].data.ptr
            if conn.fd < 0:
                continue
            if events[i].events & EPOLLIN:
                if conn.turn.line == LINE_BUSY:
                    disarm_input(loop, conn)
                turns_enter(loop, conn)
            elif events[i].events & (EPOLLERR | EPOLLHUP):
                close_conn(loop, conn)
                continue
            if events[i].events & EPOLLOUT or conn.turn.line == LINE_NONE:
                mark_dirty(loop, conn)


cdef bint drained(IoLoop* loop) noexcept nogil:
    """Return whether all responses are written."""
    cdef Conn* conn = loop.conns
    while conn != NULL:
        if conn.pending or conn.sealed or conn.refs > 1:
            return False
        conn = conn.next
    return turns_none(loop)


cdef void close_inbox(Inbox* inbox) noexcept nogil:
    """Release all pins in the inbox now, and those of jobs that come later: a checkpoint waits for them."""
    cdef PoolJob* job
    pthread_mutex_lock(&inbox.lock)
    inbox.closed = True
    job = inbox.jobs
    while job != NULL:
        answer_release(&job.answer)
        job = job.next
    pthread_mutex_unlock(&inbox.lock)


cdef void finish(IoLoop* loop) noexcept nogil:
    """Pass on what was served: to the journals, and back to the clients."""
    tell_journals(loop)
    serve_acks(loop)
    flush_dirty(loop)


cdef void serve_round(IoLoop* loop, epoll_event* events, int count) noexcept nogil:
    loop.now = now_ns()
    serve_events(loop, events, count)
    take_handed(loop)
    take_moved(loop)
    serve_inbox(loop)
    serve_policy(loop)
    serve_polls(loop)
    serve_turns(loop)
    settle_all(loop)
    yield_room(loop)
    ask_for_flush(loop)
    end_pause(loop)
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


cdef class IoLoopRunner:
    """One I/O loop; `run` is the body of its thread. The first loop of a group accepts for all of them (`listen`)."""

    def __cinit__(self):
        memset(&self.loop, 0, sizeof(IoLoop))
        self.loop.epoll = -1
        self.loop.listener = -1
        self.loop.spare_fd = -1

    def __init__(self, StorageEngine stores, ReadPoolWorkers pool, PortLimits limits, PolicyRequests policy=None,
                 TlsServerContext tls=None, AccessLogBuffer access=None):
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
        loop.usage = &limits.usage
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
            raise OSError(errno, "cannot create an I/O loop: no descriptors or no memory are left")
        if loop.stores.loop_count == BOARD_MOST:
            raise ValueError(f"there can be at most {BOARD_MOST} I/O loops")
        pthread_mutex_init(&loop.handed_lock, NULL)
        pthread_mutex_init(&loop.inbox.lock, NULL)
        loop.inbox.waker = &loop.waker
        loop.inbox.owed_max = limits.limits.pending_reads_max
        event.events = EPOLLIN
        event.data.ptr = &loop.waker
        epoll_ctl(loop.epoll, EPOLL_CTL_ADD, loop.waker.fd, &event)
        rejections_init(&loop.rejections)
        polls_init(&loop.polls, loop.stores, &loop.usage.polls, loop.stores.loop_count, &loop.waker)
        loop.stores.loops[loop.stores.loop_count] = &loop.waker
        loop.stores.loop_count += 1
        for i in range(loop.stores.journal_count):
            loop.stores.journals[i].wakers[loop.stores.journals[i].waker_count] = &loop.waker
            loop.stores.journals[i].waker_count += 1

    def listen(self, listener_fd: int, list peers) -> None:
        """Accept from `listener_fd` (non-blocking, listening) and distribute the connections over `peers`."""
        cdef epoll_event event
        self.loop.listener = listener_fd
        self.loop.spare_fd = c_open("/dev/null", O_RDONLY | O_CLOEXEC)
        for peer in peers:
            self.loop.peers[self.loop.peer_count] = &(<IoLoopRunner> peer).loop
            self.loop.peer_count += 1
        event.events = EPOLLIN
        event.data.ptr = &self.loop
        if epoll_ctl(self.loop.epoll, EPOLL_CTL_ADD, listener_fd, &event) != 0:
            raise OSError(errno, "cannot poll the listening socket")

    def move_encrypted_to(self, list loops) -> None:
        """Let START_TLS move connections of this loop to `loops`, which serve TLS, in turn. Call it before `run`."""
        for other in loops:
            self.loop.tls_loops[self.loop.tls_loop_count] = &(<IoLoopRunner> other).loop
            self.loop.tls_loop_count += 1

    def run(self) -> None:
        """Serve until stopped, or until a fatal failure."""
        with nogil:
            run(&self.loop)

    def one_round(self) -> None:
        """Run one round without a sleep in the calling thread: for tests, on a loop that no thread runs."""
        cdef epoll_event events[EVENTS]
        with nogil:
            serve_round(&self.loop, events, epoll_wait(self.loop.epoll, events, EVENTS, 0))

    def stop(self, now: bool) -> None:
        """Finish the requests in progress and end, or end at once if `now`. Any thread."""
        bk_store(&self.loop.stopping, 2 if now else 1)
        waker_wake(&self.loop.waker)

    def wake(self) -> None:
        """Have the loop run a round, though nothing has arrived. Any thread."""
        waker_wake(&self.loop.waker)

    def stats(self) -> dict[str, object]:
        stats = dict(self.loop.stats)
        stats["errors"] = list(self.loop.stats.errors)
        stats["turned_away"] = list(self.loop.rejections.totals)
        stats.update(<dict> self.loop.polls.stats)
        stats["refused_reads"] = self.loop.inbox.refused
        stats["reads_in_progress"] = self.loop.inbox.owed
        stats["adds_in_progress"] = sum([
            self.loop.acks[i].tail - self.loop.acks[i].head + self.loop.written[i].tail - self.loop.written[i].head
            for i in range(self.loop.stores.journal_count)])
        stats["connections_stalled"] = self.loop.stalled
        return stats

    def batches(self):
        """Return the batch reads answered so far, by duration and size. Any thread."""
        return batch_view(&self.loop.batches)

    def ops(self):
        """Return durations of requests, by name failed and succeeded, and of adds by journal. Any thread."""
        return ops_view(&self.loop.ops)

    def directories(self):
        """Return durations of adds and reads and sizes of entries by ledger directory; none once closed. Any thread."""
        if self.loop.directories == NULL:
            return []
        return [directory_view(&self.loop.directories[at]) for at in range(self.loop.stores.count)]

    def rejections(self) -> list[tuple[bytes, int, int]]:
        """Return violations since the last call: (address of 16 bytes, Reason, count). Any thread."""
        return rejections_drain(&self.loop.rejections)

    def close(self) -> None:
        """Free everything, after the thread has ended and the read pool is stopped."""
        cdef PoolJob* job = self.loop.inbox.jobs
        cdef PoolJob* following
        cdef PolicyJob* answer = policy_collect(&self.loop.policy_done)
        cdef PolicyJob* later
        cdef Conn* conn
        while job != NULL:
            following = job.next
            answer_release(&job.answer)
            conn_release(<Conn*> job.request.owner)
            pool_free(self.loop.pool, job)
            job = following
        self.loop.inbox.jobs = NULL
        while answer != NULL:
            later = answer.next
            conn_release(<Conn*> answer.owner)
            policy_free(answer)
            answer = later
        take_handed(&self.loop)          # accepted for this loop after it had ended
        while self.loop.conns != NULL:
            close_conn(&self.loop, self.loop.conns)
        drop_moved(&self.loop)
        while self.loop.dirty != NULL:
            conn = self.loop.dirty
            self.loop.dirty = conn.next_dirty
            conn.dirty = False
            if conn.turn.line == LINE_NONE:
                conn_release(conn)
        for line in range(1, LINES):
            turns_next(&self.loop, <Line> line)      # all its connections are closed
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
