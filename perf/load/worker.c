/* One thread with an epoll loop over its own connections. It sends while the window is open, receives and counts. */
#include "load.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define DRAIN_NS 10000000000u /* responses that are later than this count as lost */

static void want_writable(struct worker *w, struct connection *c, bool wanted)
{
    if (c->writable_wanted == wanted)
        return;
    struct epoll_event event = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0), .data.ptr = c};
    if (epoll_ctl(w->epoll, EPOLL_CTL_MOD, c->fd, &event) < 0)
        die("epoll_ctl: %s", strerror(errno));
    c->writable_wanted = wanted;
}

/* Sends built requests directly from the ring. */
static void flush(struct worker *w, struct connection *c)
{
    size_t ring_bytes = (size_t)c->window * c->frame_bytes;
    while (c->sent_bytes < c->made_bytes) {
        size_t at = (size_t)(c->sent_bytes % ring_bytes), left = (size_t)(c->made_bytes - c->sent_bytes);
        size_t first = left < ring_bytes - at ? left : ring_bytes - at;
        struct iovec pieces[2] = {{c->ring + at, first}, {c->ring, left - first}};
        struct msghdr message = {.msg_iov = pieces, .msg_iovlen = left > first ? 2 : 1};
        ssize_t sent = sendmsg(c->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN)
            break;
        if (sent < 0)
            die("send: %s", strerror(errno));
        c->sent_bytes += (uint64_t)sent;
    }
    want_writable(w, c, c->sent_bytes < c->made_bytes);
}

static void pump(struct worker *w, struct connection *c, uint64_t now)
{
    while (c->outstanding < c->window && c->made < c->limit && (!c->period || c->due <= now))
        request_make(c, now);
    flush(w, c);
}

/* Returns the nanoseconds until the next timer. */
static uint64_t idle_ns(const struct worker *w, uint64_t now)
{
    uint64_t until = w->run->end > now ? w->run->end : now + DRAIN_NS / 10;
    for (int i = 0; i < w->connection_count && now < w->run->end; i++) {
        const struct connection *c = &w->connections[i];
        bool open = c->period && c->outstanding < c->window && c->made < c->limit;
        if (open && c->due < until)
            until = c->due;
    }
    return until > now ? until - now : 0;
}

static void wait_and_receive(struct worker *w)
{
    struct epoll_event events[64];
    uint64_t idle = w->options->spin ? 0 : idle_ns(w, now_ns());
    struct timespec timeout = {(time_t)(idle / 1000000000u), (long)(idle % 1000000000u)};
    int ready = epoll_pwait2(w->epoll, events, 64, &timeout, NULL);
    if (ready < 0 && errno != EINTR)
        die("epoll_pwait2: %s", strerror(errno));
    for (int i = 0; i < ready; i++) {
        struct connection *c = events[i].data.ptr;
        if (events[i].events & ~(uint32_t)EPOLLOUT && !answers_receive(c, &w->tally, w->run))
            die("the server closed the connection with %u requests outstanding", c->outstanding);
        if (events[i].events & EPOLLOUT)
            flush(w, c);
    }
}

static bool all_answered(const struct worker *w)
{
    for (int i = 0; i < w->connection_count; i++)
        if (w->connections[i].answered < w->connections[i].limit)
            return false;
    return true;
}

static uint64_t outstanding(const struct worker *w)
{
    uint64_t sum = 0;
    for (int i = 0; i < w->connection_count; i++)
        sum += w->connections[i].outstanding;
    return sum;
}

static void announce_measured(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    run->measuring--;
    pthread_cond_signal(&run->changed);
    pthread_mutex_unlock(&run->lock);
}

void *worker_main(void *argument)
{
    struct worker *w = argument;
    uint64_t now;
    while ((now = now_ns()) < w->run->end && !all_answered(w)) {
        for (int i = 0; i < w->connection_count; i++)
            pump(w, &w->connections[i], now);
        wait_and_receive(w);
    }
    announce_measured(w->run);
    for (uint64_t until = now + DRAIN_NS; outstanding(w) && now_ns() < until;) {
        for (int i = 0; i < w->connection_count; i++)
            flush(w, &w->connections[i]);
        wait_and_receive(w);
    }
    return NULL;
}
