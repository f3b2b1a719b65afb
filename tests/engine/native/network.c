/* Sockets, epoll and eventfd without a kernel: the bookie's side of a connection is a descriptor, the peer's side is
   a number that Python uses. What is sent arrives at once, but each side takes it when it runs.

   A descriptor is a real one that nothing else uses, so that its number is not given away twice. */
#define _GNU_SOURCE
#include "world.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/eventfd.h>

enum { NONE, EVENT, POLL, CONNECTION, LISTENER };
enum { CONNECTIONS_MAX = 128, WATCHED_MAX = 256, PENDING_MAX = 128 };

struct pipe {
    char *data;
    int64_t head, size;         /* bytes [head, head + size) of a ring with the capacity of a socket */
};

struct connection {
    int fd;
    struct pipe in, out;        /* as the bookie sees it */
    int peer_ended, peer_gone, bookie_ended, reset;
    uint32_t address;
};

struct watched {
    int fd;
    uint32_t events;
    epoll_data_t data;
};

struct descriptor {
    int kind, index;
    uint64_t count;             /* of an eventfd */
    struct watched *watched;    /* of an epoll */
    int watched_count;
};

static struct descriptor descriptors[FDS_MAX];
static struct connection connections[CONNECTIONS_MAX];
static int connection_count, pending[PENDING_MAX], pending_count, listener = -1;

void world_notify(void);

int network_owns(int fd)
{
    return fd >= 0 && fd < FDS_MAX && descriptors[fd].kind != NONE;
}

void network_forget(int fd)
{
    struct descriptor *d = &descriptors[fd];
    if (d->kind == CONNECTION) {
        step(OP_CLOSE, d->index, 0, "socket");
        connections[d->index].bookie_ended = 1;
        world_notify();
    }
    free(d->watched);
    *d = (struct descriptor){0};
    for (int i = 0; i < FDS_MAX; i++)
        for (int j = 0; descriptors[i].kind == POLL && j < descriptors[i].watched_count; j++)
            if (descriptors[i].watched[j].fd == fd)
                descriptors[i].watched[j--] = descriptors[i].watched[--descriptors[i].watched_count];
}

static int64_t capacity(void)
{
    return shared->settings.socket_bytes;
}

static int64_t put(struct pipe *pipe, const char *data, int64_t size)
{
    int64_t space = capacity() - pipe->size, n = size < space ? size : space;
    if (!pipe->data)
        pipe->data = malloc((size_t)capacity());
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

static uint32_t ready(int fd)
{
    struct descriptor *d = &descriptors[fd];
    struct connection *c;
    switch (d->kind) {
    case EVENT:
        return EPOLLOUT | (d->count ? EPOLLIN : 0u);
    case LISTENER:
        return pending_count ? EPOLLIN : 0u;
    case CONNECTION:
        c = &connections[d->index];
        if (c->reset)
            return EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP;
        return (c->in.size || c->peer_ended ? EPOLLIN : 0u) | (c->out.size < capacity() ? EPOLLOUT : 0u) |
               (c->peer_ended && c->bookie_ended ? EPOLLHUP : 0u);
    default:
        return 0;
    }
}

/* Wake those who wait for this descriptor. */
static void changed(int fd)
{
    for (int i = 0; i < FDS_MAX; i++)
        for (int j = 0; descriptors[i].kind == POLL && j < descriptors[i].watched_count; j++)
            if (descriptors[i].watched[j].fd == fd)
                wake(&descriptors[i], 1);
    wake(&descriptors[fd], 1);
}

static int world_eventfd(unsigned initial, int flags)
{
    int fd = eventfd(initial, flags);
    if (self && fd >= 0 && fd < FDS_MAX)
        descriptors[fd] = (struct descriptor){.kind = EVENT, .count = initial};
    return fd;
}

ssize_t network_read(int fd, void *data, size_t size)
{
    struct descriptor *d = &descriptors[fd];
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
    uint64_t more;
    if (descriptors[fd].kind != EVENT || size < 8) {
        errno = EINVAL;
        return -1;
    }
    step(OP_WAKE, fd, 0, NULL);
    memcpy(&more, data, 8);
    descriptors[fd].count += more;
    changed(fd);
    maybe_yield();
    return 8;
}

static int world_epoll_create1(int flags)
{
    int fd = epoll_create1(flags);
    if (self && fd >= 0 && fd < FDS_MAX)
        descriptors[fd] = (struct descriptor){.kind = POLL, .watched = calloc(WATCHED_MAX, sizeof(struct watched))};
    return fd;
}

static int world_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    struct descriptor *d = &descriptors[epoll];
    int at = 0;
    if (!self || d->kind != POLL)
        return epoll_ctl(epoll, operation, fd, event);
    if (fd < FDS_MAX && descriptors[fd].kind == NONE) {
        descriptors[fd].kind = LISTENER; /* the only descriptor that the engine did not get from us */
        listener = fd;
    }
    while (at < d->watched_count && d->watched[at].fd != fd)
        at++;
    if ((operation == EPOLL_CTL_ADD) == (at < d->watched_count)) {
        errno = operation == EPOLL_CTL_ADD ? EEXIST : ENOENT;
        return -1;
    }
    if (operation == EPOLL_CTL_DEL)
        d->watched[at] = d->watched[--d->watched_count];
    else {
        d->watched[at] = (struct watched){fd, event->events, event->data};
        if (operation == EPOLL_CTL_ADD)
            d->watched_count++;
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
        block(d, deadline);
    }
}

static int world_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    int64_t deadline;
    if (!self || count != 1 || !network_owns(fds[0].fd))
        return poll(fds, count, timeout_ms);
    step(OP_EPOLL, fds[0].fd, timeout_ms, NULL);
    deadline = until_ms(timeout_ms);
    while (!(ready(fds[0].fd) & EPOLLIN) && shared->now < deadline)
        block(&descriptors[fds[0].fd], deadline);
    fds[0].revents = ready(fds[0].fd) & EPOLLIN ? POLLIN : 0;
    return fds[0].revents != 0;
}

static int world_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    struct connection *c;
    int index, made;
    if (!self || fd != listener)
        return accept4(fd, address, size, flags);
    step(OP_ACCEPT, pending_count, 0, NULL);
    if (pending_count == 0) {
        errno = EAGAIN;
        return -1;
    }
    made = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (made < 0 || made >= FDS_MAX)
        return -1;
    index = pending[0];
    memmove(pending, pending + 1, sizeof(int) * (size_t)--pending_count);
    c = &connections[index];
    c->fd = made;
    descriptors[made] = (struct descriptor){.kind = CONNECTION, .index = index};
    if (address && size && *size >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in *in = (struct sockaddr_in *)address;
        *in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)(20000 + index))};
        in->sin_addr.s_addr = htonl(c->address);
        *size = sizeof(struct sockaddr_in);
    }
    return made;
}

static struct connection *connection_of(int fd)
{
    return network_owns(fd) && descriptors[fd].kind == CONNECTION ? &connections[descriptors[fd].index] : NULL;
}

static ssize_t world_recv(int fd, void *data, size_t size, int flags)
{
    struct connection *c = self ? connection_of(fd) : NULL;
    int was_full;
    ssize_t n;
    if (!c)
        return recv(fd, data, size, flags);
    step(OP_RECV, descriptors[fd].index, (int64_t)size, NULL);
    if (c->reset) {
        errno = ECONNRESET;
        return -1;
    }
    if (c->in.size == 0) {
        if (c->peer_ended)
            return 0;
        errno = EAGAIN;
        return -1;
    }
    if (!(flags & MSG_PEEK) && size > 1 && chance(shared->settings.short_io))
        size = 1 + draw() % (size - 1);
    was_full = c->in.size == capacity();
    n = take(&c->in, data, (int64_t)size, flags & MSG_PEEK);
    if (was_full && c->in.size < capacity())
        world_notify(); /* the peer can send more */
    return n;
}

static ssize_t sending(int fd, const struct iovec *parts, size_t count)
{
    struct connection *c = connection_of(fd);
    int64_t sent = 0, most = NEVER, size = 0;
    for (size_t i = 0; i < count; i++)
        size += (int64_t)parts[i].iov_len;
    step(OP_SEND, descriptors[fd].index, size, NULL);
    if (c->reset || c->peer_gone) {
        errno = c->reset ? ECONNRESET : EPIPE;
        return -1;
    }
    if (size > 1 && chance(shared->settings.short_io))
        most = 1 + (int64_t)(draw() % (uint64_t)(size - 1));
    for (size_t i = 0; i < count && sent < most; i++) {
        int64_t want = (int64_t)parts[i].iov_len < most - sent ? (int64_t)parts[i].iov_len : most - sent;
        int64_t n = put(&c->out, parts[i].iov_base, want);
        sent += n;
        if (n < want)
            break;
    }
    if (sent == 0 && size > 0) {
        errno = EAGAIN;
        return -1;
    }
    world_notify();
    maybe_yield();
    return sent;
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
    if (!self || !connection_of(fd))
        return send(fd, data, size, flags);
    return sending(fd, &part, 1);
}

static int world_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    return self && connection_of(fd) ? 0 : setsockopt(fd, level, name, value, size);
}

static int world_getpeername(int fd, struct sockaddr *address, socklen_t *size)
{
    struct connection *c = self ? connection_of(fd) : NULL;
    struct sockaddr_in in = {.sin_family = AF_INET};
    if (!c)
        return getpeername(fd, address, size);
    in.sin_addr.s_addr = htonl(c->address);
    memcpy(address, &in, *size < sizeof(in) ? *size : sizeof(in));
    *size = sizeof(in);
    return 0;
}

const struct replacement network_replacements[] = {
    {"eventfd", world_eventfd, 0},
    {"epoll_create1", world_epoll_create1, 0},
    {"epoll_ctl", world_epoll_ctl, 0},
    {"epoll_wait", world_epoll_wait, 0},
    {"poll", world_poll, 0},
    {"accept4", world_accept4, 0},
    {"recv", world_recv, 0},
    {"sendmsg", world_sendmsg, 0},
    {"send", world_send, 0},
    {"setsockopt", world_setsockopt, 0},
    {"getpeername", world_getpeername, 0},
    {NULL, NULL, 0},
};

/* --- the peers' side, called by Python ---------------------------------------------------------------------------- */

void network_begin(void)
{
    connection_count = pending_count = 0;
    listener = -1;
}

/* Connect from an address; return the connection's number, or -1 if the backlog is full. */
int peer_connect(uint32_t address)
{
    int index = connection_count;
    if (pending_count == PENDING_MAX || index == CONNECTIONS_MAX || listener < 0)
        return -1;
    step(OP_PEER, index, 0, "connect");
    connections[index] = (struct connection){.fd = -1, .address = address};
    connection_count++;
    pending[pending_count++] = index;
    changed(listener);
    return index;
}

static void touched(struct connection *c)
{
    if (c->fd >= 0)
        changed(c->fd);
}

/* Return how many bytes the bookie's socket took, or -1 if the connection has ended. */
int64_t peer_send(int index, const char *data, int64_t size)
{
    struct connection *c = &connections[index];
    int64_t n;
    step(OP_PEER, index, size, "send");
    if (c->reset || c->bookie_ended)
        return -1;
    n = put(&c->in, data, size);
    touched(c);
    return n;
}

/* Return how many bytes were received, 0 if there are none, or -1 if there are none and the bookie has closed. */
int64_t peer_receive(int index, char *data, int64_t size)
{
    struct connection *c = &connections[index];
    int64_t n;
    if (c->reset)
        return -1;
    n = take(&c->out, data, size, 0);
    if (n == 0 && c->bookie_ended)
        return -1;
    if (n > 0)
        touched(c);
    return n;
}

/* End a connection: 0 half-closes it, 1 closes it, 2 resets it. */
void peer_end(int index, int how)
{
    struct connection *c = &connections[index];
    step(OP_PEER, index, how, "end");
    c->peer_ended = 1;
    c->peer_gone = how > 0;
    c->reset = how == 2;
    touched(c);
}
