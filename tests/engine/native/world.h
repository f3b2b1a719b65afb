/* A deterministic world for the bookie's engine: one thread runs at a time, chosen by a seed, and time, disk and
   network are simulated.

   redirect.c replaces the libc functions that the compiled modules, LMDB and the interpreter call by the functions
   named world_* here. A thread that the world does not know (`self` is NULL) gets the real functions. turns.c lets one
   thread after the other run.

   A world can have several processes: bookies that die alone, and clients. Only the running thread of all of them
   touches the state of the world, so none of it needs a lock. It lies in `shared`, which all map at the same address,
   and which outlives a process that is killed. */
#ifndef WORLD_H
#define WORLD_H

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NEVER INT64_MAX

enum {
    THREADS_MAX = 256, PROCESSES_MAX = 8, CONNECTIONS_MAX = 256, EVENTS_MAX = 1 << 16, FDS_MAX = 4096,
    OUTPUT_BYTES = 60000, UNDO_BYTES = 32 << 20, HISTORY_BYTES = 32 << 20, SOCKET_BYTES_MAX = 256 << 10
};

/* How a run of the bookie ended, as the exit status of its process. */
enum { ENDED = 0, KILLED = 40, STUCK = 41, OVERFLOWN = 42 };

enum op {
    OP_LOCK, OP_UNLOCK, OP_WAIT, OP_SIGNAL, OP_ACQUIRE, OP_RELEASE, OP_START, OP_EXIT, OP_SLEEP, OP_YIELD,
    OP_OPEN, OP_CLOSE, OP_READ, OP_WRITE, OP_SYNC, OP_ALLOCATE, OP_TRUNCATE, OP_RENAME, OP_UNLINK, OP_MKDIR,
    OP_STATVFS, OP_EPOLL, OP_RECV, OP_SEND, OP_ACCEPT, OP_WAKE, OP_PEER, OPS
};

enum action { FAULT_NONE, FAULT_EIO, FAULT_ENOSPC, FAULT_SHORT, FAULT_STALL, FAULT_ROT, FAULT_LOST, FAULT_KILL, FAULT_ASTRAY };

/* What the disk lied about: the content of journals, other content, what a sync covers, what was read. */
enum lie { LIE_JOURNAL, LIE_FILE, LIE_SYNC, LIE_READ, LIES };

struct event {
    uint32_t step;
    uint16_t thread;
    uint16_t op;
    int64_t now;
    int64_t a, b;
    char text[40];
};

/* The settings of a world, drawn by Python before the run. Times are in simulated ns, shares in parts of 1,000. */
struct settings {
    uint64_t seed;
    int64_t kill_at;            /* the step at which the process dies; 0 for never */
    int64_t steps_max;
    int64_t preempt;            /* share of calls after which another thread runs */
    int64_t priorities;         /* 1: the ready thread with the highest priority runs, and priorities change at times */
    int64_t spurious;           /* share of waits on conditions that end without a reason */
    int64_t disk_ns;            /* mean latency of a read or write */
    int64_t sync_ns;            /* mean latency of a sync */
    int64_t short_io;           /* share of reads and writes of sockets that move fewer bytes than they could */
    int64_t socket_bytes;       /* capacity of a socket in each direction */
    int64_t pause_at;           /* the step at which a thread, or all of them, stand still; 0 for never */
    int64_t pause_ns;
    int64_t pause_all;
    int64_t full_from, full_to; /* simulated time in which the disk has no space; NEVER for never */
    int64_t jump_at, jump_ns;   /* the step at which the wall clock jumps, and how far; 0 for never */
    int64_t traced;             /* 1: the last EVENTS_MAX calls are kept */
    int64_t absent_ns;          /* for up to this long a preempted thread, one in four, gets no processor; 0 for never */
};

struct thread {
    int id, process, state, woken;
    uint32_t turn;              /* a futex: 1 when it may run on its own kernel thread */
    uint32_t parked;            /* a futex: 1 when it can be carried */
    void (*life)(struct thread *);
    void *stack;                /* while another thread runs, in its process; see turns.c */
    uintptr_t storage;
    const void *on;             /* what it waits for, in its process */
    int64_t deadline, paused_until, priority;
    int64_t unbroken;           /* steps since it last waited */
    void *(*body)(void *);
    void *argument;
};

/* A process of the world, and the disk that it uses. The disk stays when the process dies. */
struct process {
    int alive, noticed;
    uint32_t turn;              /* a futex: 1 when its thread `next` may run */
    int next;
    struct settings settings;
    int64_t steps;
    int64_t faults;             /* that were injected and may be fatal */
    int64_t lies[LIES];
    int64_t undo_bytes, undo_count, graves;
    char root[256], graveyard[256];
};

/* One end of a connection: the process, and its descriptor; -1 if Python holds the end by the connection's number. */
struct end {
    int process, fd, ended, gone;
};

struct pipe {
    int64_t head, size;         /* bytes [head, head + size) of a ring with the capacity of a socket */
    char data[SOCKET_BYTES_MAX];
};

struct connection {
    struct end ends[2];         /* who connected, who accepted */
    int reset;
    uint32_t address;           /* of who connected */
    struct pipe pipes[2];       /* what each end has sent and the other has not read */
};

struct listener {
    int process, fd, port, pending_count, pending[128];
};

struct shared {
    struct settings settings;   /* of the process that began the world, for Python */
    int64_t steps, now;
    int64_t wall_jump;          /* of the wall clock, in ns, so far */
    uint64_t hash;              /* of all events: equal for equal worlds */
    int64_t event_count;
    int64_t history_bytes;
    int64_t status;             /* with which the last run of a process that is put back has ended */
    int64_t output_bytes;       /* of its log */
    char output[OUTPUT_BYTES];
    char finding[1024];
    struct event events[EVENTS_MAX];
    char history[HISTORY_BYTES];
    uint64_t draws;             /* the state of the random generator */
    int thread_count, connection_count, listener_count;
    int cut_off[PROCESSES_MAX][PROCESSES_MAX]; /* 1: what this process sends to that one does not arrive */
    struct thread threads[THREADS_MAX];
    struct process processes[PROCESSES_MAX];
    struct listener listeners[PROCESSES_MAX];
    struct connection connections[CONNECTIONS_MAX];
    char undo[PROCESSES_MAX][UNDO_BYTES];
};

extern struct shared *shared;
extern __thread struct thread *self __attribute__((tls_model("initial-exec")));
extern struct process *mine; /* of this process */

/* threads.c */
uint64_t draw(void);
int chance(int64_t of_1000);
/* Count and trace a call; the process may be killed here. */
void step(enum op op, int64_t a, int64_t b, const char *text);
/* Perhaps let another thread run. */
void maybe_yield(void);
/* Wait until `on` is woken (1) or simulated time reaches the deadline (0). */
int block(const void *on, int64_t deadline);
void wake(const void *on, int all);
void wake_in(int process, const void *on, int all);
void sleep_ns(int64_t ns);
void finish(int status, const char *finding) __attribute__((noreturn));

/* turns.c */
void turns_begin(struct thread *t);
void turns_await(struct thread *t);
void turns_pass(struct thread *me, struct thread *next);
void turns_give(struct thread *next);
void turns_end(struct thread *next);
void park(struct thread *t);
int turns_create(struct thread *t, pthread_t *out, const pthread_attr_t *attributes, void *(*body)(void *));
int turns_park_spares(void);
int turns_created(void);
void turns_call(void *top, void (*function)(void), void **left);
void turns_resume(void *stack);

/* reset.c */
void reset_end(int status);

/* network.c */
int network_owns(int fd);
void network_forget(int fd);
void network_dies(int process);
/* Forget the descriptors of the process that this one was forked from. */
void network_inherit(void);
void disk_inherit(void);
ssize_t network_read(int fd, void *data, size_t size);
ssize_t network_write(int fd, const void *data, size_t size);

/* undo.c */
enum undo_kind {
    UNDO_WRITE, UNDO_SIZE, UNDO_SYNC, UNDO_CREATE, UNDO_RENAME, UNDO_UNLINK, UNDO_MKDIR, UNDO_RMDIR, UNDO_DIRSYNC
};
void note_change(int fd, uint64_t inode, int64_t at, int64_t size);
void note_growth(uint64_t inode, int64_t before);
void note_names(enum undo_kind kind, const char *path, const char *other, int64_t grave);
void sync_begins(void);
void note_sync(enum undo_kind kind, uint64_t inode, const char *path);
int64_t bury(const char *path);

/* A replacement: the name of the libc function, and ours. `interpreter` replacements apply to libpython, too. */
struct replacement {
    const char *name;
    void *ours;
    int interpreter;
};
extern const struct replacement thread_replacements[], disk_replacements[], network_replacements[];

#endif
