"""Output and held input of a connection."""
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memmove

from bookie._fast.base.file cimport iovec
from bookie._fast.base.planted cimport PLANT_SLICE_RESENT, PLANT_UNPIN_ONCE, bk_planted
from bookie._fast.base.sync cimport bk_add, bk_load
from bookie._fast.base.tls cimport TLS_OPEN, TLS_RECORD, tls_close, tls_send, tls_write
from bookie._fast.base.types cimport CLOSED, FULL, NO_MEMORY, OK, PENDING
from bookie._fast.server.limits cimport AUTH_WAITING, auth_at_first
from bookie._fast.server.owed_reads cimport owed_begins, owed_bytes, owed_ends
from bookie._fast.server.rejections cimport OUT_OF_MEMORY, TOO_MUCH_OUTPUT
from bookie._fast.server.users cimport MAY_ALL
from bookie._fast.store.gather cimport Answer, ReadRequest, region_unpin

cdef extern from "<sys/socket.h>" nogil:
    struct msghdr:
        iovec* msg_iov
        size_t msg_iovlen
    ssize_t sendmsg(int, const msghdr*, int) noexcept
    int MSG_NOSIGNAL
    int MSG_DONTWAIT

cdef extern from "<string.h>" nogil:
    void* memset(void*, int, size_t) noexcept

cdef enum:
    IOV_MOST = 256
    OUT_FIRST = 4096
    OWED_SHARE = 16              # the read pool may owe a connection 1 / this of the budget of output
    OUT_KEEP = 1 << 18           # an empty output buffer of at most this size is kept,
    KEPT_SHARE = 4               # while less than 1 / this of the budget of output is taken
    ITEMS_FIRST = 16
    SEAL_BYTES = 1 << 16         # encrypted at a time, which limits what a peer that does not read leaves encrypted


cdef Conn* conn_new(int fd, void* loop, const NetLimits* limits, NetUsage* usage) noexcept nogil:
    cdef Conn* conn = <Conn*> calloc(1, sizeof(Conn))
    if conn == NULL:
        return NULL
    conn.fd = fd
    conn.loop = loop
    conn.limits = limits
    conn.usage = usage
    conn.refs = 1
    conn.login.granted = MAY_ALL
    conn_set_auth(conn, auth_at_first(limits))
    return conn


cdef void drop_output(Conn* conn) noexcept nogil:
    cdef uint32_t i
    for i in range(conn.head, conn.count):
        if conn.items[i].base != NULL:
            region_unpin(conn.items[i].region)
    conn.head = conn.count = conn.slices = conn.looked = 0
    conn.pending = conn.sliced = conn.out_used = 0


cdef void set_out_room(Conn* conn, uint64_t room) noexcept nogil:
    bk_add(&conn.usage.output_bytes, <int64_t> room - <int64_t> conn.out_room)
    conn.out_room = room


cdef void set_items_room(Conn* conn, uint32_t room) noexcept nogil:
    bk_add(&conn.usage.output_bytes, (<int64_t> room - <int64_t> conn.items_room) * <int64_t> sizeof(OutItem))
    conn.items_room = room


cdef void set_sealed(Conn* conn, uint64_t sealed) noexcept nogil:
    if sealed != conn.sealed:
        bk_add(&conn.usage.output_bytes, <int64_t> sealed - <int64_t> conn.sealed)
        conn.sealed = sealed


cdef void set_held_room(Conn* conn, uint64_t room) noexcept nogil:
    cdef uint64_t early = room if conn.login.state == AUTH_WAITING else 0
    bk_add(&conn.usage.input_bytes, <int64_t> room - <int64_t> conn.held_room)
    bk_add(&conn.usage.early_bytes, <int64_t> early - <int64_t> conn.early_room)
    conn.held_room = room
    conn.early_room = early


cdef void note_waiting(Conn* conn) noexcept nogil:
    cdef int64_t waiting = <int64_t> (conn.pending + owed_bytes(&conn.owed))
    if waiting != conn.waiting:
        bk_add(&conn.usage.waiting_bytes, waiting - conn.waiting)
        conn.waiting = waiting


cdef void conn_set_auth(Conn* conn, AuthState auth) noexcept nogil:
    conn.login.state = auth
    conn.login.may = conn.login.granted if auth != AUTH_WAITING else 0
    set_held_room(conn, conn.held_room)


cdef void conn_drop(Conn* conn) noexcept nogil:
    if conn.tls != NULL:
        tls_close(conn.tls, -1)
        conn.tls = NULL
    set_sealed(conn, 0)
    drop_output(conn)
    note_waiting(conn)
    set_out_room(conn, 0)
    set_items_room(conn, 0)
    set_held_room(conn, 0)
    free(conn.out)
    free(conn.items)
    free(conn.held)
    conn.out = NULL
    conn.items = NULL
    conn.held = NULL
    conn.held_size = 0


cdef void conn_release(Conn* conn) noexcept nogil:
    conn.refs -= 1
    if conn.refs == 0:
        conn_drop(conn)
        free(conn.read_queues)
        free(conn)


cdef void conn_trim(Conn* conn) noexcept nogil:
    if conn.pending:
        return
    free(conn.out)
    free(conn.items)
    conn.out = NULL
    conn.items = NULL
    set_out_room(conn, 0)
    set_items_room(conn, 0)


cdef Status grow_items(Conn* conn) noexcept nogil:
    """Make room for one more item. Return OK; FULL if that is over the budget; NO_MEMORY."""
    cdef uint32_t room
    cdef OutItem* grown
    if conn.count < conn.items_room:
        return OK
    if conn.head > conn.count // 2:
        memmove(conn.items, conn.items + conn.head, (conn.count - conn.head) * sizeof(OutItem))
        conn.count -= conn.head
        conn.looked = conn.looked - conn.head if conn.looked > conn.head else 0
        conn.head = 0
        return OK
    room = conn.items_room * 2 if conn.items_room else ITEMS_FIRST
    if bk_load(&conn.usage.output_bytes) + <int64_t> (room - conn.items_room) * <int64_t> sizeof(OutItem) \
            > conn.limits.output_bytes_max:
        return FULL
    grown = <OutItem*> realloc(conn.items, room * sizeof(OutItem))
    if grown == NULL:
        return NO_MEMORY
    conn.items = grown
    set_items_room(conn, room)
    return OK


cdef inline OutItem* next_item(Conn* conn) noexcept nogil:
    conn.count += 1
    return &conn.items[conn.count - 1]


cdef bint affordable(const Conn* conn, uint64_t room, bint to_wait) noexcept nogil:
    """Return whether the output may hold `room` bytes. Half of the budget is for unsent output, a quarter for
    responses as they are written, an eighth for connections with little output, and the last for those with hardly
    any.
    """
    cdef int64_t most = conn.limits.output_bytes_max
    if room > OUT_LITTLE:
        most -= most // 2 if to_wait else most // 4
    elif room > OUT_FIRST:
        most -= most // 8
    return bk_load(&conn.usage.output_bytes) + <int64_t> room - <int64_t> conn.out_room <= most


cdef bint conn_affords(const Conn* conn, uint64_t size) noexcept nogil:
    return affordable(conn, (conn.out_used + size) * 2, False)


cdef Status repack(Conn* conn, uint64_t room) noexcept nogil:
    """Move copied, unsent output to a new buffer of `room` bytes. Return OK or NO_MEMORY."""
    cdef uint8_t* fresh = <uint8_t*> malloc(room)
    cdef uint64_t at = 0
    cdef uint32_t i
    cdef OutItem* item
    if fresh == NULL:
        return NO_MEMORY
    for i in range(conn.head, conn.count):
        item = &conn.items[i]
        if item.base == NULL:
            memcpy(fresh + at, conn.out + item.at, item.size)
            item.at = at
            at += item.size
    free(conn.out)
    conn.out = fresh
    conn.out_used = at
    set_out_room(conn, room)
    return OK


cdef Status grow_out(Conn* conn, uint64_t size, bint to_wait) noexcept nogil:
    """Make room for `size` more bytes. Return OK; FULL if that is over the budget; NO_MEMORY. A peer that never reads
    everything must not make the buffer grow for ever: sent bytes are dropped when they are the greater part, or when
    all output has to wait.
    """
    cdef uint64_t unsent = conn.pending - conn.sliced
    cdef bint stale = conn.out_used > (unsent if to_wait else 2 * unsent)
    cdef uint64_t least = (unsent if stale else conn.out_used) + size
    cdef uint64_t room = conn.out_room if conn.out_room else OUT_FIRST
    cdef uint8_t* grown
    if to_wait:
        room = least             # not much will follow
    while room < least:
        room *= 2
    if room > conn.out_room and not affordable(conn, room, to_wait):
        return FULL
    if stale:
        return repack(conn, room)
    grown = <uint8_t*> realloc(conn.out, room)
    if grown == NULL:
        return NO_MEMORY
    conn.out = grown
    set_out_room(conn, room)
    return OK


cdef uint64_t conn_room(const Conn* conn) noexcept nogil:
    cdef int64_t others = bk_load(&conn.usage.waiting_bytes) - conn.waiting
    return <uint64_t> max(conn.limits.output_bytes_max // 2 - others, <int64_t> OUT_LITTLE)


cdef uint64_t share_of(const Conn* conn) noexcept nogil:
    """Return how much output may wait for this peer before its requests are not served any more: half of what is left
    of a quarter of the budget, so that all waiting peers, with one more response each, stay below half of the budget.
    """
    cdef int64_t left = conn.limits.output_bytes_max // 4 - bk_load(&conn.usage.waiting_bytes)
    return OUT_LITTLE if left < 2 * OUT_LITTLE else <uint64_t> left // 2


cdef inline uint64_t owed_most(const Conn* conn) noexcept nogil:
    return <uint64_t> conn.limits.output_bytes_max // OWED_SHARE


cdef void conn_awaits(Conn* conn, const ReadRequest* request) noexcept nogil:
    owed_begins(&conn.owed, request)
    note_waiting(conn)


cdef void conn_awaited(Conn* conn, const ReadRequest* request, const Answer* answer) noexcept nogil:
    owed_ends(&conn.owed, request, answer)
    note_waiting(conn)


cdef bint conn_is_full(const Conn* conn) noexcept nogil:
    cdef uint64_t share
    if conn.pending <= OUT_LITTLE and owed_bytes(&conn.owed) == 0 and conn.pending <= conn.limits.output_high_bytes:
        return False
    share = share_of(conn)
    return (conn.pending > min(conn.limits.output_high_bytes, share)
            or owed_bytes(&conn.owed) > min(owed_most(conn), share))


cdef bint conn_goes_on(const Conn* conn) noexcept nogil:
    return conn.pending <= conn.limits.output_low_bytes and not conn_is_full(conn)


cdef uint8_t* no_room(Conn* conn, Status status) noexcept nogil:
    """Note why the connection has to be closed. Only a response that cannot be written ends it: growing and shrinking
    of buffers may fail as well, but another connection may make room.
    """
    conn.why = TOO_MUCH_OUTPUT if status == FULL else OUT_OF_MEMORY
    return NULL


cdef uint8_t* conn_reserve(Conn* conn, uint64_t size) noexcept nogil:
    cdef OutItem* item
    cdef Status status = OK
    if conn.out_used + size > conn.out_room:
        status = grow_out(conn, size, False)
        if status != OK:
            return no_room(conn, status)
    item = &conn.items[conn.count - 1] if conn.count > conn.head else NULL
    if item == NULL or item.base != NULL or item.at + item.size != conn.out_used:
        status = grow_items(conn)
        if status != OK:
            return no_room(conn, status)
        item = next_item(conn)
        item.base = NULL
        item.at = conn.out_used
        item.size = 0
        item.region = NULL
    item.size += size
    conn.out_used += size
    conn.pending += size
    conn.turn.written += size
    return conn.out + conn.out_used - size


cdef bint conn_slice(Conn* conn, const uint8_t* base, uint64_t size, Region* region) noexcept nogil:
    cdef OutItem* item
    if grow_items(conn) != OK:
        return False
    item = next_item(conn)
    item.base = base
    item.at = 0
    item.size = size
    item.region = region
    conn.pending += size
    conn.turn.written += size
    conn.sliced += size
    conn.slices += 1
    return True


cdef inline bint may_keep(const Conn* conn) noexcept nogil:
    """Return whether it may keep its empty buffers for the next responses. Those of connections that have nothing to
    send must not use up the budget, which nobody would get back from them.
    """
    if conn.out_room > OUT_KEEP or conn.polls.count:
        return False
    return bk_load(&conn.usage.output_bytes) <= conn.limits.output_bytes_max // KEPT_SHARE


cdef void sent(Conn* conn, uint64_t n) noexcept nogil:
    """Remove `n` sent bytes from the front of the output."""
    cdef OutItem* item
    conn.pending -= n
    while n > 0:
        item = &conn.items[conn.head]
        if n < item.size:
            if item.base != NULL:
                item.base += 0 if bk_planted(PLANT_SLICE_RESENT) else n
                conn.sliced -= n
            else:
                item.at += n
            item.size -= n
            return
        n -= item.size
        if item.base != NULL:
            region_unpin(item.region)
            conn.slices -= 1
            conn.sliced -= item.size
        conn.head += 1
    if conn.head == conn.count:
        conn.head = conn.count = conn.looked = 0
        conn.out_used = 0
        if not may_keep(conn):
            conn_trim(conn)


cdef Status seal_record(Conn* conn) noexcept nogil:
    """Encrypt the front of the output: a long item in place, or several short ones gathered."""
    cdef uint8_t gathered[TLS_RECORD]
    cdef uint32_t i = conn.head
    cdef uint64_t size = 0
    cdef uint64_t part
    cdef const uint8_t* data = gathered
    cdef OutItem* item = &conn.items[i]
    if item.size >= TLS_RECORD or i + 1 == conn.count:
        data = item.base if item.base != NULL else conn.out + item.at
        size = item.size if item.size < TLS_RECORD else TLS_RECORD
    else:
        while i < conn.count and size < TLS_RECORD:
            item = &conn.items[i]
            part = item.size if item.size < TLS_RECORD - size else TLS_RECORD - size
            memcpy(gathered + size, item.base if item.base != NULL else conn.out + item.at, part)
            size += part
            i += 1
    if tls_write(conn.tls, data, <uint32_t> size) != OK:
        return CLOSED
    sent(conn, size)
    return OK


cdef Status flush_sealed(Conn* conn) noexcept nogil:
    """Encrypt and send in turn, so that few bytes wait encrypted; these count against the budget of output."""
    cdef uint64_t left = 0
    cdef uint64_t before
    cdef Status status = tls_send(conn.tls, conn.fd, &left)
    while status == OK and conn.pending and conn.tls.state == TLS_OPEN:
        before = conn.pending
        while conn.pending and before - conn.pending < SEAL_BYTES:
            if seal_record(conn) != OK:
                return CLOSED
        status = tls_send(conn.tls, conn.fd, &left)
    set_sealed(conn, left)
    return status


cdef Status conn_flush(Conn* conn) noexcept nogil:
    cdef Status status = flush_sealed(conn) if conn.tls != NULL else flush_clear(conn)
    conn.gone = status == CLOSED
    note_waiting(conn)
    return status


cdef Status flush_clear(Conn* conn) noexcept nogil:
    cdef iovec parts[IOV_MOST]
    cdef msghdr message
    cdef uint32_t i, n
    cdef uint64_t offered
    cdef ssize_t written
    memset(&message, 0, sizeof(message))
    message.msg_iov = parts
    while conn.pending:
        n = 0
        offered = 0
        for i in range(conn.head, conn.count):
            if n == IOV_MOST:
                break
            parts[n].iov_base = <void*> (conn.items[i].base if conn.items[i].base != NULL
                                         else conn.out + conn.items[i].at)
            parts[n].iov_len = conn.items[i].size
            offered += conn.items[i].size
            n += 1
        message.msg_iovlen = n
        written = sendmsg(conn.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT)
        if written < 0:
            if errno == EINTR:
                continue
            return PENDING if errno == EAGAIN else CLOSED
        sent(conn, written)
        if <uint64_t> written < offered:
            return PENDING
    return OK


cdef bint conn_settle(Conn* conn, bint all_items) noexcept nogil:
    cdef uint32_t first = conn.head if all_items or conn.looked < conn.head else conn.looked
    cdef uint64_t wanted = 0
    cdef uint32_t i
    cdef OutItem* item
    if not all_items and bk_planted(PLANT_UNPIN_ONCE):
        return True
    for i in range(first, conn.count):
        item = &conn.items[i]
        if item.base != NULL and bk_load(&item.region.wanted):
            wanted += item.size
    if wanted > conn.out_room - conn.out_used and grow_out(conn, wanted, True) != OK:
        return False
    for i in range(first, conn.count if wanted else first):
        item = &conn.items[i]
        if item.base != NULL and item.size <= wanted and bk_load(&item.region.wanted):
            memcpy(conn.out + conn.out_used, item.base, item.size)
            item.base = NULL
            item.at = conn.out_used
            conn.out_used += item.size
            conn.sliced -= item.size
            conn.slices -= 1
            wanted -= item.size              # items wanted only since the sum was taken are left to the next call
            region_unpin(item.region)
    conn.looked = conn.count
    return True


cdef bint conn_shrink(Conn* conn) noexcept nogil:
    cdef uint64_t unsent = conn.pending - conn.sliced
    cdef uint64_t before = conn.out_room
    cdef uint8_t* smaller
    if before <= OUT_LITTLE or unsent > before - before // 8:
        return False
    if unsent == 0:
        free(conn.out)
        conn.out = NULL
        conn.out_used = 0
        set_out_room(conn, 0)
    elif conn.out_used > unsent + unsent // 8:
        return repack(conn, unsent) == OK
    else:
        smaller = <uint8_t*> realloc(conn.out, conn.out_used)
        if smaller == NULL:
            return False
        conn.out = smaller
        set_out_room(conn, conn.out_used)
    return True


cdef bint conn_hold_room(Conn* conn, uint64_t room) noexcept nogil:
    cdef uint8_t* grown
    if room <= conn.held_room:
        return True
    if bk_load(&conn.usage.input_bytes) + <int64_t> (room - conn.held_room) > conn.limits.input_bytes_max:
        return False
    if (conn.login.state == AUTH_WAITING and bk_load(&conn.usage.early_bytes) + <int64_t> (room - conn.held_room)
            > conn.limits.early_bytes_max):
        return False
    grown = <uint8_t*> realloc(conn.held, room)
    if grown == NULL:
        return False
    conn.held = grown
    set_held_room(conn, room)
    return True


cdef bint conn_hold(Conn* conn, const uint8_t* data, uint64_t size) noexcept nogil:
    if size == 0:
        conn.held_size = 0
        if conn.held != NULL:
            free(conn.held)
            conn.held = NULL
            set_held_room(conn, 0)
        return True
    if not conn_hold_room(conn, size):
        return False
    memmove(conn.held, data, size)
    conn.held_size = size
    return True
