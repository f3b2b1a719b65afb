/* Sockets, epoll and eventfd without a kernel. What is sent lies in shared memory at once; the other end takes it when
   it runs. An end of a connection is a descriptor of a process, or a number that Python uses for a peer.

   A descriptor is a real one that nothing else uses, so that its number is not given away twice. Addresses are only
   remembered; a port of the world is not a port of the machine. */
#define _GNU_SOURCE
#include "world.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

enum { NONE, EVENT, POLL, CONNECTION, LISTENER, UNCONNECTED };
enum { WATCHED_MAX = 256, PENDING_MAX = 128, EPHEMERAL = 20000 };

struct watched {
    int fd;
    uint32_t events;
    epoll_data_t data;
};

struct descriptor {
    int kind, index, side;      /* of a connection: which of its ends this is */
    int port;                   /* that a socket was bound to */
    uint64_t count;             /* of an eventfd */
    struct watched *watched;    /* of an epoll */
    int watched_count;
};

static struct descriptor descriptors[FDS_MAX];
static int descriptors_end;     /* none is owned from this one on */

void world_notify(void);

int network_owns(int fd)
{
    return fd >= 0 && fd < FDS_MAX && descriptors[fd].kind != NONE;
}

static int made(int fd, struct descriptor descriptor)
{
    if (self && fd >= 0 && fd < FDS_MAX) {
        descriptors[fd] = descriptor;
        descriptors_end = fd >= descriptors_end ? fd + 1 : descriptors_end;
    }
    return fd;
}

/* --- bytes in flight ---------------------------------------------------------------------------------------------- */

static int64_t capacity(void)
{
    return shared->settings.socket_bytes;
}

static int64_t put(struct pipe *pipe, const char *data, int64_t size)
{
    int64_t space = capacity() - pipe->size, n = size < space ? size : space;
    for (int64_t done = 0; done < n;) {
        int64_t at = (pipe->head + pipe->size) % capacity();
        int64_t part = n - done < capacity() - at ? n - done : capacity() - at;
        memcpy(pipe->data + at, data + done, (size_t)part);
        pipe->size += part;
        done += part;
    }
    return n;
}

static int64_t take(struct pipe *pipe, char *data, int64_t size, int peek)
{
    int64_t n = size < pipe->size ? size : pipe->size, head = pipe->head;
    for (int64_t done = 0; done < n;) {
        int64_t part = n - done < capacity() - head ? n - done : capacity() - head;
        memcpy(data + done, pipe->data + head, (size_t)part);
        head = (head + part) % capacity();
        done += part;
    }
    if (!peek) {
        pipe->head = head;
        pipe->size -= n;
    }
    return n;
}

/* Whether what one end sends does not reach the other at present. */
static int is_cut(const struct connection *c, int from)
{
    return shared->cut_off[c->ends[from].process][c->ends[1 - from].process];
}

static int64_t readable(const struct connection *c, int side)
{
    return is_cut(c, 1 - side) ? 0 : c->pipes[1 - side].size;
}

static int ended(const struct connection *c, int side)
{
    return c->ends[1 - side].ended && !is_cut(c, 1 - side);
}

static uint32_t ready(int fd)
{
    struct descriptor *d = &descriptors[fd];
    struct connection *c = &shared->connections[d->index];
    switch (d->kind) {
    case EVENT:
        return EPOLLOUT | (d->count ? EPOLLIN : 0u);
    case LISTENER:
        return shared->listeners[d->index].pending_count ? EPOLLIN : 0u;
    case CONNECTION:
        if (c->reset)
            return EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP;
        return (readable(c, d->side) || ended(c, d->side) ? EPOLLIN : 0u) |
               (c->pipes[d->side].size < capacity() ? EPOLLOUT : 0u) |
               (ended(c, d->side) && c->ends[d->side].ended ? EPOLLHUP : 0u);
    default:
        return 0;
    }
}

/* All waits of a process for descriptors are woken together, and look again. */
static const char waits_for_descriptors;

static void changed_in(int process)
{
    wake_in(process, &waits_for_descriptors, 1);
}

static void changed_end(const struct end *end)
{
    if (end->fd >= 0)
        changed_in(end->process);
    else
        world_notify();
}

/* --- eventfd, epoll and poll -------------------------------------------------------------------------------------- */

static int world_eventfd(unsigned initial, int flags)
{
    return made(eventfd(initial, flags), (struct descriptor){.kind = EVENT, .count = initial});
}

static ssize_t stream_read(int fd, void *data, int64_t size, int flags);
static ssize_t sending(int fd, const struct iovec *parts, size_t count);

ssize_t network_read(int fd, void *data, size_t size)
{
    struct descriptor *d = &descriptors[fd];
    if (d->kind == CONNECTION)
        return stream_read(fd, data, (int64_t)size, 0);
    if (d->kind != EVENT || size < 8 || d->count == 0) {
        errno = EAGAIN;
        return -1;
    }
    memcpy(data, &d->count, 8);
    d->count = 0;
    return 8;
}

ssize_t network_write(int fd, const void *data, size_t size)
{
    struct iovec part = {(void *)data, size};
    uint64_t more;
    if (descriptors[fd].kind == CONNECTION)
        return sending(fd, &part, 1);
    if (descriptors[fd].kind != EVENT || size < 8) {
        errno = EINVAL;
        return -1;
    }
    step(OP_WAKE, fd, 0, NULL);
    memcpy(&more, data, 8);
    descriptors[fd].count += more;
    changed_in(self->process);
    maybe_yield();
    return 8;
}

static int world_epoll_create1(int flags)
{
    int fd = epoll_create1(flags);
    if (!self)
        return fd;
    return made(fd, (struct descriptor){.kind = POLL, .watched = calloc(WATCHED_MAX, sizeof(struct watched))});
}

static int world_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    struct descriptor *d = &descriptors[epoll];
    int at = 0;
    if (!self || d->kind != POLL)
        return epoll_ctl(epoll, operation, fd, event);
    while (at < d->watched_count && d->watched[at].fd != fd)
        at++;
    if ((operation == EPOLL_CTL_ADD) == (at < d->watched_count)) {
        errno = operation == EPOLL_CTL_ADD ? EEXIST : ENOENT;
        return -1;
    }
    if (operation == EPOLL_CTL_ADD && at == WATCHED_MAX) {
        errno = ENOSPC;
        return -1;
    }
    if (operation == EPOLL_CTL_DEL)
        d->watched[at] = d->watched[--d->watched_count];
    else {
        d->watched[at] = (struct watched){fd, event->events, event->data};
        d->watched_count += operation == EPOLL_CTL_ADD;
    }
    return 0;
}

static int64_t until_ms(int timeout_ms)
{
    return timeout_ms < 0 ? NEVER : shared->now + (int64_t)timeout_ms * 1000000;
}

static int world_epoll_wait(int epoll, struct epoll_event *out, int most, int timeout_ms)
{
    struct descriptor *d = &descriptors[epoll];
    int64_t deadline;
    if (!self || d->kind != POLL)
        return epoll_wait(epoll, out, most, timeout_ms);
    step(OP_EPOLL, epoll, timeout_ms, NULL);
    deadline = until_ms(timeout_ms);
    for (;;) {
        int count = 0, first = d->watched_count ? (int)(draw() % (uint64_t)d->watched_count) : 0;
        for (int i = 0; i < d->watched_count && count < most; i++) {
            struct watched *w = &d->watched[(first + i) % d->watched_count];
            uint32_t events = ready(w->fd) & (w->events | EPOLLERR | EPOLLHUP);
            if (events)
                out[count++] = (struct epoll_event){events, w->data};
        }
        if (count > 0 || timeout_ms == 0 || shared->now >= deadline)
            return count;
        block(&waits_for_descriptors, deadline);
    }
}

static int world_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    int64_t deadline;
    uint32_t wanted;
    if (!self || count != 1 || !network_owns(fds[0].fd))
        return poll(fds, count, timeout_ms);
    step(OP_EPOLL, fds[0].fd, timeout_ms, NULL);
    deadline = until_ms(timeout_ms);
    wanted = (fds[0].events & POLLIN ? EPOLLIN : 0u) | (fds[0].events & POLLOUT ? EPOLLOUT : 0u);
    while (!(ready(fds[0].fd) & wanted) && shared->now < deadline)
        block(&waits_for_descriptors, deadline);
    fds[0].revents = (short)((ready(fds[0].fd) & EPOLLIN & wanted ? POLLIN : 0) |
                             (ready(fds[0].fd) & EPOLLOUT & wanted ? POLLOUT : 0));
    return fds[0].revents != 0;
}

/* --- connections -------------------------------------------------------------------------------------------------- */

/* Return the number of a new connection, or -1 if there are too many that have not ended. */
static int new_connection(struct end from, struct end to, uint32_t address)
{
    int index = 0;
    while (index < shared->connection_count &&
           !(shared->connections[index].ends[0].gone && shared->connections[index].ends[1].gone))
        index++;
    if (index == CONNECTIONS_MAX)
        return -1;
    if (index == shared->connection_count)
        shared->connection_count++;
    shared->connections[index].ends[0] = from;
    shared->connections[index].ends[1] = to;
    shared->connections[index].reset = 0;
    shared->connections[index].address = address;
    for (int side = 0; side < 2; side++)
        shared->connections[index].pipes[side].head = shared->connections[index].pipes[side].size = 0;
    return index;
}

static struct listener *listener_at(int port)
{
    for (int i = 0; i < shared->listener_count; i++)
        if (shared->listeners[i].port == port && shared->processes[shared->listeners[i].process].alive)
            return &shared->listeners[i];
    return NULL;
}

/* Connect an end to a port (0: the first that was opened); return the connection's number, or -errno. */
static int connect_end(struct end from, int port, uint32_t address)
{
    struct listener *listener = port ? listener_at(port) : shared->listener_count ? &shared->listeners[0] : NULL;
    int index;
    if (!listener)
        return -ECONNREFUSED;
    if (listener->pending_count == PENDING_MAX)
        return -EAGAIN;
    index = new_connection(from, (struct end){.process = listener->process, .fd = -1}, address);
    if (index < 0)
        return -ENOBUFS;
    listener->pending[listener->pending_count++] = index;
    changed_in(listener->process);
    return index;
}

static void end_side(int index, int side)
{
    struct connection *c = &shared->connections[index];
    c->ends[side].ended = c->ends[side].gone = 1;
    changed_end(&c->ends[1 - side]);
}

void network_forget(int fd)
{
    struct descriptor *d = &descriptors[fd];
    if (d->kind == CONNECTION) {
        step(OP_CLOSE, d->index, 0, "socket");
        end_side(d->index, d->side);
    }
    if (d->kind == LISTENER)
        shared->listeners[d->index].port = -1;
    free(d->watched);
    *d = (struct descriptor){0};
    for (int i = 0; i < descriptors_end; i++)
        for (int j = 0; descriptors[i].kind == POLL && j < descriptors[i].watched_count; j++)
            if (descriptors[i].watched[j].fd == fd)
                descriptors[i].watched[j--] = descriptors[i].watched[--descriptors[i].watched_count];
}

void network_inherit(void)
{
    memset(descriptors, 0, sizeof(descriptors[0]) * (size_t)descriptors_end);
    descriptors_end = 0;
}

/* Reset what a process that dies has open, as its kernel would. */
void network_dies(int process)
{
    for (int i = 0; i < shared->listener_count; i++)
        if (shared->listeners[i].process == process)
            shared->listeners[i].port = -1;
    for (int i = 0; i < shared->connection_count; i++)
        for (int side = 0; side < 2; side++) {
            struct connection *c = &shared->connections[i];
            if (c->ends[side].process != process || c->ends[side].gone)
                continue;
            c->reset = !c->ends[1 - side].gone;
            end_side(i, side);
        }
}

static struct connection *connection_of(int fd)
{
    return network_owns(fd) && descriptors[fd].kind == CONNECTION ? &shared->connections[descriptors[fd].index] : NULL;
}

static int world_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    struct descriptor *d = &descriptors[fd];
    struct listener *listener;
    struct connection *c;
    int index, accepted;
    if (!self || !network_owns(fd) || d->kind != LISTENER)
        return accept4(fd, address, size, flags);
    listener = &shared->listeners[d->index];
    step(OP_ACCEPT, listener->pending_count, 0, NULL);
    if (listener->pending_count == 0) {
        errno = EAGAIN;
        return -1;
    }
    index = listener->pending[0];
    accepted = made(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                    (struct descriptor){.kind = CONNECTION, .index = index, .side = 1});
    if (accepted < 0)
        return -1;
    memmove(listener->pending, listener->pending + 1, sizeof(int) * (size_t)--listener->pending_count);
    c = &shared->connections[index];
    c->ends[1].fd = accepted;
    if (address && size && *size >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in *in = (struct sockaddr_in *)address;
        *in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)(EPHEMERAL + index))};
        in->sin_addr.s_addr = htonl(c->address);
        *size = sizeof(struct sockaddr_in);
    }
    return accepted;
}

static ssize_t stream_read(int fd, void *data, int64_t size, int flags)
{
    struct descriptor *d = &descriptors[fd];
    struct connection *c = &shared->connections[d->index];
    struct pipe *pipe = &c->pipes[1 - d->side];
    int was_full = pipe->size == capacity();
    ssize_t n;
    step(OP_RECV, d->index, size, NULL);
    if (c->reset) {
        errno = ECONNRESET;
        return -1;
    }
    if (readable(c, d->side) == 0) {
        if (ended(c, d->side))
            return 0;
        errno = EAGAIN;
        return -1;
    }
    if (!(flags & MSG_PEEK) && size > 1 && chance(mine->settings.short_io))
        size = 1 + (int64_t)(draw() % (uint64_t)(size - 1));
    n = take(pipe, data, size, flags & MSG_PEEK);
    if (was_full && pipe->size < capacity())
        changed_end(&c->ends[1 - d->side]); /* it can send more */
    return n;
}

static ssize_t sending(int fd, const struct iovec *parts, size_t count)
{
    struct descriptor *d = &descriptors[fd];
    struct connection *c = &shared->connections[d->index];
    int64_t sent = 0, most = NEVER, size = 0;
    for (size_t i = 0; i < count; i++)
        size += (int64_t)parts[i].iov_len;
    step(OP_SEND, d->index, size, NULL);
    if (c->reset || c->ends[1 - d->side].gone) {
        errno = c->reset ? ECONNRESET : EPIPE;
        return -1;
    }
    if (size > 1 && chance(mine->settings.short_io))
        most = 1 + (int64_t)(draw() % (uint64_t)(size - 1));
    for (size_t i = 0; i < count && sent < most; i++) {
        int64_t want = (int64_t)parts[i].iov_len < most - sent ? (int64_t)parts[i].iov_len : most - sent;
        int64_t n = put(&c->pipes[d->side], parts[i].iov_base, want);
        sent += n;
        if (n < want)
            break;
    }
    if (sent == 0 && size > 0) {
        errno = EAGAIN;
        return -1;
    }
    changed_end(&c->ends[1 - d->side]);
    maybe_yield();
    return sent;
}

static ssize_t world_recv(int fd, void *data, size_t size, int flags)
{
    return self && connection_of(fd) ? stream_read(fd, data, (int64_t)size, flags) : recv(fd, data, size, flags);
}

static ssize_t world_sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (!self || !connection_of(fd))
        return sendmsg(fd, message, flags);
    return sending(fd, message->msg_iov, message->msg_iovlen);
}

static ssize_t world_send(int fd, const void *data, size_t size, int flags)
{
    struct iovec part = {(void *)data, size};
    return self && connection_of(fd) ? sending(fd, &part, 1) : send(fd, data, size, flags);
}

/* --- sockets of Python -------------------------------------------------------------------------------------------- */

static int world_socket(int domain, int type, int protocol)
{
    if (!self || (domain != AF_INET && domain != AF_INET6) || (type & 0xF) != SOCK_STREAM)
        return socket(domain, type, protocol);
    return made(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), (struct descriptor){.kind = UNCONNECTED});
}

static int world_socketpair(int domain, int type, int protocol, int pair[2])
{
    int index;
    if (!self)
        return socketpair(domain, type, protocol, pair);
    pair[0] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pair[1] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    index = new_connection((struct end){.process = self->process, .fd = pair[0]},
                           (struct end){.process = self->process, .fd = pair[1]}, INADDR_LOOPBACK);
    if (index < 0)
        finish(OVERFLOWN, "the world has too many connections");
    made(pair[0], (struct descriptor){.kind = CONNECTION, .index = index, .side = 0});
    made(pair[1], (struct descriptor){.kind = CONNECTION, .index = index, .side = 1});
    return 0;
}

static int world_bind(int fd, const struct sockaddr *address, socklen_t size)
{
    if (!self || !network_owns(fd))
        return bind(fd, address, size);
    descriptors[fd].port = ntohs(((const struct sockaddr_in *)address)->sin_port);
    return 0;
}

static int world_listen(int fd, int backlog)
{
    struct descriptor *d = &descriptors[fd];
    int index = 0;
    if (!self || !network_owns(fd))
        return listen(fd, backlog);
    while (index < shared->listener_count && shared->listeners[index].port >= 0)
        index++;
    if (index == PROCESSES_MAX)
        finish(OVERFLOWN, "the world has too many listeners");
    if (index == shared->listener_count)
        shared->listener_count++;
    d->kind = LISTENER;
    d->index = index;
    d->port = d->port ? d->port : EPHEMERAL - 1 - index;
    shared->listeners[index] = (struct listener){.process = self->process, .fd = fd, .port = d->port};
    return 0;
}

static int world_connect(int fd, const struct sockaddr *address, socklen_t size)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)address;
    int index;
    if (!self || !network_owns(fd))
        return connect(fd, address, size);
    step(OP_PEER, ntohs(in->sin_port), 0, "connect");
    index = connect_end((struct end){.process = self->process, .fd = fd}, ntohs(in->sin_port), INADDR_LOOPBACK);
    if (index < 0) {
        errno = -index;
        return -1;
    }
    descriptors[fd].kind = CONNECTION;
    descriptors[fd].index = index;
    descriptors[fd].side = 0;
    return 0;
}

static int world_shutdown(int fd, int how)
{
    struct connection *c = self ? connection_of(fd) : NULL;
    if (!c)
        return shutdown(fd, how);
    if (how != SHUT_RD) {
        c->ends[descriptors[fd].side].ended = 1;
        changed_end(&c->ends[1 - descriptors[fd].side]);
    }
    return 0;
}

static int world_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    return self && network_owns(fd) ? 0 : setsockopt(fd, level, name, value, size);
}

static int world_getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
    if (!self || !network_owns(fd))
        return getsockopt(fd, level, name, value, size);
    memset(value, 0, *size);
    return 0;
}

static int world_ioctl(int fd, unsigned long request, void *argument)
{
    return self && network_owns(fd) && request == FIONBIO ? 0 : ioctl(fd, request, argument);
}

static int name_of(uint32_t address, int port, struct sockaddr *out, socklen_t *size)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    in.sin_addr.s_addr = htonl(address);
    memcpy(out, &in, *size < sizeof(in) ? *size : sizeof(in));
    *size = sizeof(in);
    return 0;
}

static int world_getpeername(int fd, struct sockaddr *address, socklen_t *size)
{
    struct connection *c = self ? connection_of(fd) : NULL;
    if (!c)
        return getpeername(fd, address, size);
    return name_of(c->address, EPHEMERAL + descriptors[fd].index, address, size);
}

static int world_getsockname(int fd, struct sockaddr *address, socklen_t *size)
{
    if (!self || !network_owns(fd))
        return getsockname(fd, address, size);
    return name_of(INADDR_LOOPBACK, descriptors[fd].port, address, size);
}

const struct replacement network_replacements[] = {
    {"eventfd", world_eventfd, 1},
    {"epoll_create1", world_epoll_create1, 1},
    {"epoll_ctl", world_epoll_ctl, 1},
    {"epoll_wait", world_epoll_wait, 1},
    {"poll", world_poll, 1},
    {"accept4", world_accept4, 1},
    {"recv", world_recv, 1},
    {"sendmsg", world_sendmsg, 1},
    {"send", world_send, 1},
    {"socket", world_socket, 1},
    {"socketpair", world_socketpair, 1},
    {"bind", world_bind, 1},
    {"listen", world_listen, 1},
    {"connect", world_connect, 1},
    {"shutdown", world_shutdown, 1},
    {"setsockopt", world_setsockopt, 1},
    {"getsockopt", world_getsockopt, 1},
    {"ioctl", world_ioctl, 1},
    {"getpeername", world_getpeername, 1},
    {"getsockname", world_getsockname, 1},
    {NULL, NULL, 0},
};

/* --- the peers' side, called by Python ---------------------------------------------------------------------------- */

/* Let what one process sends to another arrive, or not. */
void network_cut(int from, int to, int cut)
{
    shared->cut_off[from][to] = cut;
    changed_in(to);
}

int network_listens(int port)
{
    return listener_at(port) != NULL;
}

/* Connect to the first listener from an address; return the connection's number, or -1. */
int peer_connect(uint32_t address)
{
    int index;
    step(OP_PEER, 0, 0, "connect");
    index = connect_end((struct end){.process = self->process, .fd = -1}, 0, address);
    return index < 0 ? -1 : index;
}

/* Return how many bytes the bookie's socket took, or -1 if the connection has ended. */
int64_t peer_send(int index, const char *data, int64_t size)
{
    struct connection *c = &shared->connections[index];
    int64_t n;
    step(OP_PEER, index, size, "send");
    if (c->reset || c->ends[1].gone)
        return -1;
    n = put(&c->pipes[0], data, size);
    changed_in(c->ends[1].process);
    return n;
}

/* Return how many bytes were received, 0 if there are none, or -1 if there are none and the bookie has closed. */
int64_t peer_receive(int index, char *data, int64_t size)
{
    struct connection *c = &shared->connections[index];
    int64_t n;
    if (c->reset)
        return -1;
    n = take(&c->pipes[1], data, size, 0);
    if (n == 0 && c->ends[1].gone)
        return -1;
    if (n > 0)
        changed_in(c->ends[1].process);
    return n;
}

/* Return which of the first 64 connections have bytes for their peers, or have ended. */
uint64_t peer_news(void)
{
    uint64_t found = 0;
    for (int i = 0; i < shared->connection_count && i < 64; i++) {
        const struct connection *c = &shared->connections[i];
        if (c->reset || c->ends[1].gone || c->pipes[1].size > 0)
            found |= UINT64_C(1) << i;
    }
    return found;
}

/* End a connection: 0 half-closes it, 1 closes it, 2 resets it. */
void peer_end(int index, int how)
{
    struct connection *c = &shared->connections[index];
    step(OP_PEER, index, how, "end");
    c->ends[0].ended = 1;
    c->ends[0].gone = how > 0;
    c->reset = how == 2;
    changed_in(c->ends[1].process);
}
