/* The bound of one cold read at a time over a connection: receives a read, preads the record, responds, in one thread.
 *
 *   lone_read RECORD_BYTES FILE...   drops the files' pages first; prints its port
 *
 * The files are entry logs of one ledger with records of one size and entries in order, so that locations are computed.
 * All requests of one recv are answered together. One connection at a time.
 */
#include "../load/wire.h"
#include "bound.h"

#include <fcntl.h>

enum { INPUT = 64 * 1024, HEADER = 1024, FILES_MAX = 64, LENGTH = 4, MAP_AT = 8 };

static int files[FILES_MAX];
static int64_t first[FILES_MAX + 1]; /* the first entry of each file; then the number of entries */
static int file_count;
static size_t record_bytes;

static void open_log(const char *path)
{
    uint8_t header[HEADER];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0 && pread(fd, header, HEADER, 0) == HEADER && fsync(fd) == 0, path);
    REQUIRE((errno = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)) == 0, path);
    int64_t end = get64(header + MAP_AT); /* 0: the log was not closed */
    if (end == 0)
        end = lseek(fd, 0, SEEK_END);
    files[file_count] = fd;
    first[file_count + 1] = first[file_count] + (end - HEADER) / (int64_t)record_bytes;
    file_count++;
}

/* Reads an entry to its place after the head of the response. False: there is no such entry. */
static bool read_entry(int64_t entry, uint8_t *to)
{
    size_t bytes = record_bytes - LENGTH;
    int file = 0;
    if (entry < 0 || entry >= first[file_count])
        return false;
    while (entry >= first[file + 1])
        file++;
    off_t at = HEADER + (off_t)(entry - first[file]) * (off_t)record_bytes + LENGTH;
    REQUIRE(pread(files[file], to, bytes, at) == (ssize_t)bytes, "pread");
    return true;
}

static void serve(int fd)
{
    static uint8_t input[INPUT];
    uint8_t *answer = malloc(READ_ANSWER_BYTES + record_bytes);
    REQUIRE(answer, "memory");
    for (size_t have = 0;;) {
        ssize_t got = recv(fd, input + have, INPUT - have, 0);
        if (got <= 0)
            break;
        have += (size_t)got;
        size_t at = 0;
        for (; have - at >= READ_BYTES && have - at >= get32(input + at) + 4; at += get32(input + at) + 4) {
            bool found = read_entry(get64(input + at + 16), answer + READ_ANSWER_BYTES);
            size_t bytes = READ_ANSWER_BYTES + (found ? record_bytes - LENGTH : 0);
            put_frame_head(answer, (uint32_t)bytes, OP_READ);
            put32(answer + 8, found ? 0 : 2);
            memcpy(answer + 12, input + at + 8, 16);
            (void)!send(fd, answer, bytes, MSG_NOSIGNAL); /* recv notices a client that has disconnected */
        }
        have -= at;
        memmove(input, input + at, have);
    }
    free(answer);
    close(fd);
}

int main(int argc, char **argv)
{
    const char *usage = "RECORD_BYTES FILE...";
    record_bytes = (size_t)argument(argc, argv, 1, usage);
    REQUIRE(record_bytes > LENGTH && argc > 2 && argc - 2 <= FILES_MAX, usage);
    for (int i = 2; i < argc; i++)
        open_log(argv[i]);
    for (int listener = listen_and_tell();;)
        serve(accept_connection(listener));
}
