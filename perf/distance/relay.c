/* A network of hosts on one switch, each host a network namespace with a TUN device. One thread.
 *
 *   relay HOSTS BYTES_PER_S DELAY_NS LOSS_PPM QUEUE_BYTES
 *
 * Host k has the address 10.77.0.(k + 1). A packet leaves its host at the rate of the link, takes DELAY_NS, and then
 * waits in the switch for the link of its receiver, which has the same rate; if more than QUEUE_BYTES wait there, it is
 * dropped. Prints the descriptors of the namespaces, which other processes enter at /proc/PID/fd/N. Lines on standard
 * input are `cut K` and `join K`; at its end the program ends, and the hosts with it. Exit code 3: the kernel gives no
 * namespaces or TUN devices.
 *
 * Without loss, packets are as large as the kernel makes them (TSO), with the time on the wire that their segments
 * have; with loss, each has one segment, since one that is lost must not take others with it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    HOSTS_MAX = 16,
    PACKET_BYTES = 66000,
    HEADER = sizeof(struct virtio_net_hdr),
    ETHERNET_BYTES = 38, /* what a segment has on the wire besides its IP packet */
    TCP_BYTES = 52,      /* the headers that each further segment of a packet repeats */
    QUEUED_MAX = 1 << 17,
    TURN = 64,
};
static const int64_t SECOND = 1000000000, LOCAL_NS = 1000000; /* the second: what a host has queued itself */

struct packet {
    int64_t due;
    size_t size;
    uint8_t data[];
};

struct host {
    int tun, space, cut;
    int64_t up_free, down_free; /* when its link has sent what it has to send, in each direction */
    struct packet *queue[QUEUED_MAX];
    unsigned head, tail;
};

static struct host hosts[HOSTS_MAX];
static int count;
static int64_t bytes_s, delay, loss_ppm, queue_bytes;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

static void need(int got, const char *what) {
    if (got < 0) {
        fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
        exit(3);
    }
}

static void set(int sock, unsigned long request, struct ifreq *change, const char *what) {
    need(ioctl(sock, request, change), what);
}

static void address(struct ifreq *change, const char *text) {
    struct sockaddr_in *to = (struct sockaddr_in *)&change->ifr_addr;
    memset(to, 0, sizeof(*to));
    to->sin_family = AF_INET;
    inet_pton(AF_INET, text, &to->sin_addr);
}

static void up(int sock, const char *device) {
    struct ifreq change = {0};
    strncpy(change.ifr_name, device, IFNAMSIZ - 1);
    set(sock, SIOCGIFFLAGS, &change, device);
    change.ifr_flags = (short)(change.ifr_flags | IFF_UP);
    set(sock, SIOCSIFFLAGS, &change, device);
}

static void make(struct host *host, int number) {
    struct ifreq change = {0};
    char text[32];
    need(unshare(CLONE_NEWNET), "a network namespace");
    need(host->space = open("/proc/self/ns/net", O_RDONLY), "the namespace");
    need(host->tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK), "/dev/net/tun");
    strcpy(change.ifr_name, "far0");
    change.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
    set(host->tun, TUNSETIFF, &change, "a TUN device");
    need(ioctl(host->tun, TUNSETOFFLOAD, loss_ppm ? 0 : TUN_F_CSUM | TUN_F_TSO4), "TUNSETOFFLOAD");
    int sock = socket(AF_INET, SOCK_DGRAM, 0);
    need(sock, "a socket");
    snprintf(text, sizeof(text), "10.77.0.%d", number + 1);
    address(&change, text);
    set(sock, SIOCSIFADDR, &change, "the address");
    address(&change, "255.255.255.0");
    set(sock, SIOCSIFNETMASK, &change, "the mask");
    up(sock, "lo");
    up(sock, "far0");
    close(sock);
}

static int64_t wire_ns(const uint8_t *data, size_t size) {
    const struct virtio_net_hdr *header = (const struct virtio_net_hdr *)data;
    int64_t bytes = (int64_t)size - HEADER, segments = 1;
    if (header->gso_size)
        segments = (bytes + header->gso_size - 1) / header->gso_size;
    bytes += segments * ETHERNET_BYTES + (segments - 1) * TCP_BYTES;
    return bytes * SECOND / bytes_s;
}

static void pass(struct host *from, const uint8_t *data, size_t size, int64_t now) {
    if (size < HEADER + 20 || data[HEADER] >> 4 != 4)
        return;
    int64_t takes = wire_ns(data, size);
    from->up_free = (from->up_free > now ? from->up_free : now) + takes;
    int number = data[HEADER + 19] - 1;
    if (number < 0 || number >= count || from->cut || hosts[number].cut)
        return;
    if (loss_ppm && random() % 1000000 < loss_ppm)
        return;
    struct host *to = &hosts[number];
    int64_t arrives = from->up_free + delay, leaves = to->down_free + takes;
    if (leaves < arrives)
        leaves = arrives;
    if ((leaves - arrives) * bytes_s / SECOND > queue_bytes || to->tail - to->head == QUEUED_MAX)
        return;
    struct packet *packet = malloc(sizeof(*packet) + size);
    need(packet ? 0 : -1, "memory");
    to->down_free = packet->due = leaves;
    packet->size = size;
    memcpy(packet->data, data, size);
    to->queue[to->tail++ % QUEUED_MAX] = packet;
}

static void take(struct host *from) {
    static uint8_t data[PACKET_BYTES];
    for (int k = 0; k < TURN; k++) {
        int64_t now = now_ns();
        if (from->up_free > now + LOCAL_NS)
            return;
        ssize_t got = read(from->tun, data, sizeof(data));
        if (got <= 0)
            return;
        pass(from, data, (size_t)got, now);
    }
}

/* Deliver what is due, and return when the next packet is. */
static int64_t deliver(struct host *to, int64_t now) {
    while (to->head != to->tail) {
        struct packet *packet = to->queue[to->head % QUEUED_MAX];
        if (packet->due > now)
            return packet->due;
        if (write(to->tun, packet->data, packet->size) < 0 && errno == EAGAIN)
            return now;
        free(packet);
        to->head++;
    }
    return now + SECOND;
}

static void command(void) {
    char line[64];
    int number;
    if (!fgets(line, sizeof(line), stdin))
        exit(0);
    if (sscanf(line, "cut %d", &number) == 1 && number >= 0 && number < count)
        hosts[number].cut = 1;
    if (sscanf(line, "join %d", &number) == 1 && number >= 0 && number < count)
        hosts[number].cut = 0;
    puts("done");
}

int main(int given, char **words) {
    if (given != 6 || (count = atoi(words[1])) < 1 || count > HOSTS_MAX || (bytes_s = atoll(words[2])) < 1) {
        fprintf(stderr, "relay HOSTS BYTES_PER_S DELAY_NS LOSS_PPM QUEUE_BYTES\n");
        return 2;
    }
    delay = atoll(words[3]);
    loss_ppm = atoll(words[4]);
    queue_bytes = atoll(words[5]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0);
    prctl(PR_SET_TIMERSLACK, 1);
    (void)setpriority(PRIO_PROCESS, 0, -10);
    for (int k = 0; k < count; k++)
        make(&hosts[k], k);
    for (int k = 0; k < count; k++)
        printf("%d%c", hosts[k].space, k + 1 < count ? ' ' : '\n');
    for (;;) {
        struct pollfd waiting[HOSTS_MAX + 1] = {{.fd = 0, .events = POLLIN}};
        int64_t now = now_ns(), next = now + SECOND;
        for (int k = 0; k < count; k++) {
            int64_t due = deliver(&hosts[k], now), free_at = hosts[k].up_free - LOCAL_NS;
            waiting[k + 1] = (struct pollfd){.fd = free_at > now ? -1 : hosts[k].tun, .events = POLLIN};
            due = free_at > now && free_at < due ? free_at : due;
            next = due < next ? due : next;
        }
        now = now_ns();
        int64_t left = next > now ? next - now : 0;
        struct timespec limit = {.tv_sec = left / SECOND, .tv_nsec = left % SECOND};
        if (ppoll(waiting, (nfds_t)count + 1, &limit, NULL) < 0 && errno != EINTR)
            need(-1, "ppoll");
        if (waiting[0].revents)
            command();
        for (int k = 0; k < count; k++)
            if (waiting[k + 1].revents & POLLIN)
                take(&hosts[k]);
    }
}
