/* What the bound programs share: a listening socket on loopback, and exiting with a message. */
#ifndef PERF_BOUND_H
#define PERF_BOUND_H
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUIRE(condition, what)                                              \
    do {                                                                      \
        if (!(condition)) {                                                   \
            fprintf(stderr, "%s: %s\n", (what), strerror(errno));             \
            exit(1);                                                          \
        }                                                                     \
    } while (0)

/* Listens on a free loopback port and prints it as the first line of output. */
static inline int listen_and_tell(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, 64) == 0, "listen");
    REQUIRE(getsockname(fd, (struct sockaddr *)&address, &size) == 0, "getsockname");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static inline int accept_connection(int listener)
{
    int yes = 1, fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    REQUIRE(fd >= 0, "accept");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return fd;
}

static inline void watch(int epoll, int operation, int fd, uint32_t events, void *data)
{
    struct epoll_event event = {.events = events, .data.ptr = data};
    REQUIRE(epoll_ctl(epoll, operation, fd, &event) == 0, "epoll_ctl");
}

static inline long argument(int argc, char **argv, int index, const char *usage)
{
    if (index >= argc) {
        fprintf(stderr, "usage: %s %s\n", argv[0], usage);
        exit(1);
    }
    return strtol(argv[index], NULL, 10);
}
#endif
