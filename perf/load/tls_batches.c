/* Batch reads of one ledger over one TLS connection: START_TLS, a handshake without verification, then V2.

   tls_batches PORT LEDGER ENTRIES BATCH OUTSTANDING SECONDS CPU

   The ledger must have the entries 0 to ENTRIES - 1, and every response must have BATCH complete entries, or the exit
   code is 1. The first second is a warm-up. Prints one JSON object. Uses the system's OpenSSL; bookies have their own. */
#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 8 << 20, ANSWER_HEAD = 36, BATCH_READ = 7, MAX_SIZE = 5 << 20 };

static const unsigned char START_TLS[] = {0, 0, 0, 11, 10, 6, 8, 3, 16, 9, 24, 10, 210, 6, 0};
static const unsigned char ACCEPTED[] = {0, 0, 0, 13, 10, 6, 8, 3, 16, 9, 24, 10, 16, 0, 210, 6, 0};

static unsigned char buffer[ROOM];
static size_t start, end;

static void fail(const char *what)
{
    fprintf(stderr, "tls_batches: %s\n", what);
    ERR_print_errors_fp(stderr);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

static uint32_t load32(const unsigned char *at)
{
    uint32_t value;
    memcpy(&value, at, 4);
    return be32toh(value);
}

static unsigned char *put32(unsigned char *at, uint32_t value)
{
    value = htobe32(value);
    memcpy(at, &value, 4);
    return at + 4;
}

static unsigned char *put64(unsigned char *at, uint64_t value)
{
    value = htobe64(value);
    memcpy(at, &value, 8);
    return at + 8;
}

static int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t) port)};
    unsigned char answer[sizeof ACCEPTED];
    int one = 1, sock = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(sock, (struct sockaddr *) &address, sizeof address) != 0)
        fail("cannot connect");
    setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (send(sock, START_TLS, sizeof START_TLS, 0) != sizeof START_TLS
        || recv(sock, answer, sizeof answer, MSG_WAITALL) != sizeof answer || memcmp(answer, ACCEPTED, sizeof answer) != 0)
        fail("START_TLS was refused");
    return sock;
}

static void ask(SSL *ssl, uint64_t ledger, uint64_t first, uint64_t id, uint32_t batch)
{
    unsigned char frame[44], *at = put32(frame, 40);
    at = put32(at, 2u << 24 | BATCH_READ << 16);
    at = put64(at, ledger);
    at = put64(at, first);
    at = put64(at, id);
    at = put32(at, batch);
    put64(at, MAX_SIZE);
    if (SSL_write(ssl, frame, sizeof frame) != sizeof frame)
        fail("the connection was lost");
}

/* Receives a complete response at `buffer + start`; returns its length including the prefix. */
static size_t receive(SSL *ssl)
{
    for (;;) {
        size_t held = end - start;
        if (held >= 4 && held >= 4 + (size_t) load32(buffer + start))
            return 4 + (size_t) load32(buffer + start);
        if (held == 0)
            start = end = 0;
        if (ROOM - end < 1 << 16) {
            memmove(buffer, buffer + start, held);
            start = 0;
            end = held;
        }
        int got = SSL_read(ssl, buffer + end, (int) (ROOM - end));
        if (got <= 0)
            fail("the connection was lost");
        end += (size_t) got;
    }
}

/* Returns the entry bytes of a valid response with `batch` entries. */
static uint64_t check(const unsigned char *answer, size_t size, uint32_t batch)
{
    uint64_t bytes = 0;
    uint32_t count = 0;
    if (size < ANSWER_HEAD || load32(answer + 8) != 0)
        fail("an answer with an error");
    for (size_t at = ANSWER_HEAD; at < size; count++) {
        uint32_t length = load32(answer + at);
        if (length > size - at - 4)
            fail("an answer that ends inside an entry");
        bytes += length;
        at += 4 + (size_t) length;
    }
    if (count != batch)
        fail("an answer with fewer entries than were asked for");
    return bytes;
}

int main(int argc, char **argv)
{
    if (argc != 8)
        fail("usage: tls_batches PORT LEDGER ENTRIES BATCH OUTSTANDING SECONDS CPU");
    uint64_t ledger = strtoull(argv[2], NULL, 10), entries = strtoull(argv[3], NULL, 10);
    uint32_t batch = (uint32_t) atoi(argv[4]), outstanding = (uint32_t) atoi(argv[5]);
    double seconds = atof(argv[6]), begun = 0, until = 0;
    uint64_t next = 0, id = 0, bytes = 0, answers = 0;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET((size_t) atoi(argv[7]), &cpus);
    sched_setaffinity(0, sizeof cpus, &cpus);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384");
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_read_buffer_len(context, 1 << 17);
    SSL *ssl = SSL_new(context);
    SSL_set_fd(ssl, connect_to(atoi(argv[1])));
    if (SSL_connect(ssl) != 1)
        fail("the handshake failed");
    for (uint32_t i = 0; i < outstanding; i++, next = (next + batch) % (entries - batch + 1))
        ask(ssl, ledger, next, id++, batch);
    until = now() + 1 + seconds;
    begun = until - seconds;
    for (double time = now(); time < until; time = now()) {
        size_t size = receive(ssl);
        uint64_t got = check(buffer + start, size, batch);
        start += size;
        if (time >= begun) {
            bytes += got;
            answers++;
        }
        ask(ssl, ledger, next, id++, batch);
        next = (next + batch) % (entries - batch + 1);
    }
    printf("{\"mb_s\": %.1f, \"answers\": %llu, \"version\": \"%s\", \"cipher\": \"%s\"}\n", (double) bytes / seconds / 1e6,
           (unsigned long long) answers, SSL_get_version(ssl), SSL_get_cipher_name(ssl));
    return 0;
}
