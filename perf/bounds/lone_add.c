/* The bound of one add at a time over a connection: receives an add, journals, syncs and responds, in one thread.
 *
 *   lone_add DIRECTORY [JOURNAL_MIB]           prints its port
 *
 * Like add_bound without an entry log and without other threads: the thread that receives adds writes them with a CRC32C
 * to a zeroed journal with O_DIRECT, one write and one fdatasync per recv. One connection at a time.
 */
#include "../load/wire.h"
#include "bound.h"

#include <fcntl.h>

enum {
    INPUT = 256 * 1024,
    BLOCK = 4096,
    ACKS = INPUT / ADD_ENTRY_AT,
    GROUP_BYTES = INPUT + 2 * BLOCK
};

static struct {
    int fd;
    off_t at, bytes;
    uint8_t *group;
} journal;

/* Creates a journal file of zeroes, so that a sync has no metadata to write. */
static void zero_journal(const char *directory)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/journal", directory);
    int fd = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
    uint8_t *zeroes = calloc(1, 1 << 20);
    REQUIRE(fd >= 0 && zeroes, path);
    for (off_t at = 0; at < journal.bytes; at += 1 << 20)
        REQUIRE(pwrite(fd, zeroes, 1 << 20, at) == 1 << 20, "write");
    REQUIRE(fsync(fd) == 0, "fsync");
    close(fd);
    free(zeroes);
    journal.fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
    REQUIRE(journal.fd >= 0, path);
}

/* Writes and syncs full blocks with a checksum in the last four bytes. */
static void commit(size_t used)
{
    size_t size = (used + 4 + BLOCK - 1) / BLOCK * BLOCK;
    memset(journal.group + used, 0, size - used);
    put32(journal.group + size - 4, ~crc_register(CRC_START, journal.group, size - 4));
    if (journal.at + (off_t)size > journal.bytes)
        journal.at = 0;
    REQUIRE(pwrite(journal.fd, journal.group, size, journal.at) == (ssize_t)size, "write");
    REQUIRE(fdatasync(journal.fd) == 0, "fdatasync");
    journal.at += (off_t)size;
}

/* Journals and acknowledges every complete frame of the input; returns the number of bytes consumed. */
static size_t take_adds(int fd, const uint8_t *input, size_t have)
{
    static uint8_t ack[ACKS][ADD_ANSWER_BYTES];
    size_t at = 0, used = 0, acks = 0;
    while (have - at >= ADD_ENTRY_AT && have - at >= get32(input + at) + 4) {
        uint32_t frame_bytes = get32(input + at) + 4, entry_bytes = frame_bytes - ADD_ENTRY_AT;
        put32(journal.group + used, entry_bytes);
        memcpy(journal.group + used + 4, input + at + ADD_ENTRY_AT, entry_bytes);
        put_frame_head(ack[acks], ADD_ANSWER_BYTES, OP_ADD);
        put32(ack[acks] + 8, 0);
        memcpy(ack[acks++] + 12, input + at + ADD_ENTRY_AT, 16);
        used += entry_bytes + 4;
        at += frame_bytes;
    }
    if (acks) {
        commit(used);
        (void)!send(fd, ack, acks * ADD_ANSWER_BYTES, MSG_NOSIGNAL); /* recv notices a client that has disconnected */
    }
    return at;
}

static void serve(int fd)
{
    static uint8_t input[INPUT];
    for (size_t have = 0;;) {
        ssize_t got = recv(fd, input + have, INPUT - have, 0);
        if (got <= 0)
            break;
        have += (size_t)got;
        size_t taken = take_adds(fd, input, have);
        have -= taken;
        memmove(input, input + taken, have);
    }
    close(fd);
}

int main(int argc, char **argv)
{
    argument(argc, argv, 1, "DIRECTORY [JOURNAL_MIB]");
    journal.bytes = (off_t)(argc > 2 ? argument(argc, argv, 2, "") : 256) << 20;
    REQUIRE(posix_memalign((void **)&journal.group, BLOCK, GROUP_BYTES) == 0, "memory");
    zero_journal(argv[1]);
    for (int listener = listen_and_tell();;)
        serve(accept_connection(listener));
}
