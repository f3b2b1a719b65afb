/* Threads that run one at a time, and simulated time. Blocking calls hand the turn to a thread that the seed chooses;
   when no thread is ready, time jumps to the next deadline.

   Mutexes and semaphores are the real ones, tried without waiting: while only one thread runs, an attempt tells
   whether another one holds them. Of conditions only the address is used. */
#define _GNU_SOURCE
#include "world.h"

#include <dlfcn.h>
#include <limits.h>
#include <sys/prctl.h>

enum { DEAD, READY, BLOCKED };
enum { CALL_NS = 200, PRIORITIES = 1 << 20, UNBROKEN_MAX = 1000000 };

struct shared *shared;
__thread struct thread *self;
struct process *mine;

static struct thread *driver; /* of this process: the thread that plays peers, if there is one */
static int dying;

static int (*gil_held)(void);
static void *(*gil_save)(void);
static void (*gil_restore)(void *);

uint64_t draw(void)
{
    uint64_t z = (shared->draws += 0x9E3779B97F4A7C15u); /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

int chance(int64_t of_1000)
{
    return of_1000 > 0 && (int64_t)(draw() % 1000) < of_1000;
}

static void found(const char *finding)
{
    snprintf(shared->finding, sizeof(shared->finding), "%s", finding);
}

void finish(int status, const char *finding)
{
    if (finding)
        found(finding);
    reset_end(status);
    abort();
}

/* Choose who runs next. Timed waits that are over become ready first; if nobody is ready, time passes. */
static struct thread *choose(void)
{
    struct thread *ready[THREADS_MAX], *best;
    for (;;) {
        int64_t next = NEVER;
        int count = 0;
        for (int i = 0; i < shared->thread_count; i++) {
            struct thread *t = &shared->threads[i];
            if (t->state == BLOCKED && t->deadline <= shared->now) {
                t->state = READY;
                t->woken = 0;
            }
            if (t->state == READY && t->paused_until > shared->now) {
                if (t->paused_until < next)
                    next = t->paused_until;
            } else if (t->state == READY)
                ready[count++] = t;
            else if (t->state == BLOCKED && t->deadline < next)
                next = t->deadline;
        }
        if (count > 0) {
            if (!mine->settings.priorities)
                return ready[draw() % (uint64_t)count];
            best = ready[0];
            for (int i = 1; i < count; i++)
                if (ready[i]->priority > best->priority)
                    best = ready[i];
            return best;
        }
        if (next == NEVER)
            finish(STUCK, "deadlock: every thread waits, and none has a time limit");
        shared->now = next;
    }
}

/* Let `choose` decide who runs. Our own state says whether and when we may run again. */
static void schedule(void)
{
    struct thread *me = self, *next;
    void *saved = NULL;
    if (dying) { /* only the driver is left */
        me->state = READY;
        return;
    }
    next = choose();
    if (next == me)
        return;
    if (gil_held())
        saved = gil_save();
    turns_pass(me, next);
    if (saved)
        gil_restore(saved);
}

/* Wake the driver of the world, wherever it is. */
void world_notify(void)
{
    struct thread *conductor = &shared->threads[0];
    shared->processes[0].noticed = 1;
    if (conductor->state == BLOCKED && conductor->on == conductor) {
        conductor->state = READY;
        conductor->woken = 1;
    }
}

static void trace(enum op op, int64_t a, int64_t b, const char *text)
{
    struct event *event = &shared->events[shared->event_count % EVENTS_MAX];
    uint64_t parts[5] = {(uint64_t)self->id, op, (uint64_t)shared->now, (uint64_t)a, (uint64_t)b};
    for (int i = 0; i < 5; i++)
        shared->hash = (shared->hash ^ parts[i]) * 0x100000001B3u;
    if (!mine->settings.traced)
        return; /* the events are many pages, which every process would have to map */
    shared->event_count++;
    *event = (struct event){(uint32_t)shared->steps, (uint16_t)self->id, (uint16_t)op, shared->now, a, b, ""};
    if (text) {
        size_t size = strlen(text);
        strncpy(event->text, size > 39 ? text + size - 39 : text, 39);
    }
}

/* End this process while the others of the world go on. */
static void __attribute__((noreturn)) die(int status)
{
    int process = self->process;
    for (int i = 0; i < shared->thread_count; i++)
        if (shared->threads[i].process == process)
            shared->threads[i].state = DEAD;
    shared->processes[process].alive = 0;
    network_dies(process);
    world_notify();
    turns_give(choose());
    _exit(status);
}

static void pause_somebody(void)
{
    const struct settings *s = &mine->settings;
    int64_t until = shared->now + s->pause_ns;
    if (s->pause_all)
        shared->now = until;
    else {
        struct thread *one = &shared->threads[draw() % (uint64_t)shared->thread_count];
        if (one != driver)
            one->paused_until = until;
    }
}

static void __attribute__((noreturn)) goes_round(void)
{
    found("a thread goes round without waiting for anything");
    if (self->process == 0)
        finish(STUCK, NULL);
    die(STUCK);
}

void step(enum op op, int64_t a, int64_t b, const char *text)
{
    const struct settings *s = &mine->settings;
    shared->steps++;
    mine->steps++;
    shared->now += CALL_NS;
    if (++self->unbroken == UNBROKEN_MAX)
        goes_round();
    trace(op, a, b, text);
    if (mine->steps == s->kill_at && !dying && !driver)
        die(KILLED);
    if (mine->steps == s->kill_at && !dying) {
        dying = 1;
        if (self == driver || !(driver->on == driver && driver->state != DEAD))
            finish(KILLED, NULL); /* the driver itself is inside the engine, and cannot record what it still could */
        if (gil_held())
            gil_save();
        driver->state = READY;
        turns_pass(self, driver);
        abort(); /* the driver ends the process */
    }
    if (mine->steps == s->pause_at)
        pause_somebody();
    if (mine->steps == s->jump_at)
        shared->wall_jump += s->jump_ns;
    if (mine->steps == s->steps_max)
        finish(STUCK, "too many steps: some thread goes round without an end");
    if (s->priorities && chance(5))
        self->priority = (int64_t)(draw() % PRIORITIES);
}

void maybe_yield(void)
{
    const struct settings *s = &mine->settings;
    if (!chance(s->preempt))
        return;
    if (s->absent_ns && draw() % 4 == 0)
        self->paused_until = shared->now + (int64_t)(draw() % (uint64_t)s->absent_ns);
    schedule();
}

int block(const void *on, int64_t deadline)
{
    self->unbroken = 0;
    self->state = BLOCKED;
    self->on = on;
    self->deadline = deadline;
    self->woken = 0;
    schedule();
    self->on = NULL;
    return self->woken;
}

void wake_in(int process, const void *on, int all)
{
    struct thread *waiting[THREADS_MAX];
    int count = 0;
    for (int i = 0; i < shared->thread_count; i++) {
        struct thread *t = &shared->threads[i];
        if (t->state == BLOCKED && t->on == on && t->process == process)
            waiting[count++] = t;
    }
    if (count == 0)
        return;
    for (int i = 0, chosen = (int)(draw() % (uint64_t)count); i < count; i++)
        if (all || i == chosen) {
            waiting[i]->state = READY;
            waiting[i]->woken = 1;
        }
}

void wake(const void *on, int all)
{
    wake_in(self->process, on, all);
}

void sleep_ns(int64_t ns)
{
    if (ns > 0)
        block(&shared->now, ns < NEVER - shared->now ? shared->now + ns : NEVER);
}

/* --- mutexes, conditions, semaphores ------------------------------------------------------------------------------ */

static int acquire(pthread_mutex_t *mutex)
{
    int rc;
    while ((rc = pthread_mutex_trylock(mutex)) == EBUSY)
        block(mutex, NEVER);
    return rc;
}

static int release(pthread_mutex_t *mutex)
{
    int rc = pthread_mutex_unlock(mutex);
    wake(mutex, 0);
    return rc;
}

static int world_lock(pthread_mutex_t *mutex)
{
    if (!self)
        return pthread_mutex_lock(mutex);
    step(OP_LOCK, 0, 0, NULL);
    maybe_yield();
    return acquire(mutex);
}

static int world_unlock(pthread_mutex_t *mutex)
{
    int rc;
    if (!self)
        return pthread_mutex_unlock(mutex);
    step(OP_UNLOCK, 0, 0, NULL);
    rc = release(mutex);
    maybe_yield();
    return rc;
}

static int wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline)
{
    int woken;
    step(OP_WAIT, deadline == NEVER ? -1 : deadline, 0, NULL);
    release(mutex);
    if (chance(mine->settings.spurious)) {
        sleep_ns((int64_t)(draw() % 100000));
        woken = 1;
    } else
        woken = block(cond, deadline);
    acquire(mutex);
    return woken ? 0 : ETIMEDOUT;
}

static int world_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    return self ? wait_until(cond, mutex, NEVER) : pthread_cond_wait(cond, mutex);
}

static int64_t ns_of(const struct timespec *at)
{
    return at->tv_sec > NEVER / 1000000000 - 2 ? NEVER : (int64_t)at->tv_sec * 1000000000 + at->tv_nsec;
}

static int world_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
    return self ? wait_until(cond, mutex, ns_of(until)) : pthread_cond_timedwait(cond, mutex, until);
}

static int world_signal(pthread_cond_t *cond)
{
    if (!self)
        return pthread_cond_signal(cond);
    step(OP_SIGNAL, 0, 0, NULL);
    wake(cond, 0);
    maybe_yield();
    return 0;
}

static int world_broadcast(pthread_cond_t *cond)
{
    if (!self)
        return pthread_cond_broadcast(cond);
    step(OP_SIGNAL, 1, 0, NULL);
    wake(cond, 1);
    maybe_yield();
    return 0;
}

static int await_semaphore(sem_t *semaphore, int64_t deadline)
{
    step(OP_ACQUIRE, deadline == NEVER ? -1 : deadline, 0, NULL);
    while (sem_trywait(semaphore) != 0)
        if (!block(semaphore, deadline)) {
            errno = ETIMEDOUT;
            return -1;
        }
    return 0;
}

static int world_sem_wait(sem_t *semaphore)
{
    return self ? await_semaphore(semaphore, NEVER) : sem_wait(semaphore);
}

static int64_t wall_offset(void);

static int world_sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
    if (!self)
        return sem_clockwait(semaphore, clock, until);
    return await_semaphore(semaphore, ns_of(until) - (clock == CLOCK_REALTIME ? wall_offset() : 0));
}

static int world_sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
    return self ? await_semaphore(semaphore, ns_of(until) - wall_offset()) : sem_timedwait(semaphore, until);
}

static int world_sem_post(sem_t *semaphore)
{
    int rc = sem_post(semaphore);
    if (self) {
        step(OP_RELEASE, 0, 0, NULL);
        wake(semaphore, 0);
    }
    return rc;
}

/* --- time --------------------------------------------------------------------------------------------------------- */

static int64_t wall_offset(void)
{
    return INT64_C(1800000000) * 1000000000 + shared->wall_jump; /* the wall clock begins in January 2027 */
}

static int world_clock_gettime(clockid_t clock, struct timespec *out)
{
    int64_t now;
    if (!self || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID)
        return clock_gettime(clock, out);
    shared->now += 20; /* so that a loop that only looks at the clock ends */
    now = shared->now + (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ? wall_offset() : 0);
    out->tv_sec = now / 1000000000;
    out->tv_nsec = now % 1000000000;
    return 0;
}

static time_t world_time(time_t *out)
{
    time_t now;
    if (!self)
        return time(out);
    now = (shared->now + wall_offset()) / 1000000000;
    if (out)
        *out = now;
    return now;
}

static int world_usleep(useconds_t microseconds)
{
    if (!self)
        return usleep(microseconds);
    step(OP_SLEEP, microseconds, 0, NULL);
    sleep_ns((int64_t)microseconds * 1000);
    return 0;
}

static int world_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
    int64_t ns;
    if (!self)
        return clock_nanosleep(clock, flags, time, left);
    ns = ns_of(time);
    if (flags & TIMER_ABSTIME)
        ns -= shared->now + (clock == CLOCK_REALTIME ? wall_offset() : 0);
    step(OP_SLEEP, ns / 1000, 0, NULL);
    sleep_ns(ns);
    return 0;
}

static int world_sched_yield(void)
{
    if (self) {
        step(OP_YIELD, 0, 0, NULL);
        sleep_ns(1000); /* the thread that it waits for runs, whatever the priorities are */
    }
    return 0;
}

/* --- the life of threads ------------------------------------------------------------------------------------------ */

static void end_thread(void)
{
    struct thread *me = self;
    step(OP_EXIT, me->id, 0, NULL);
    me->state = DEAD;
    self = NULL;
    turns_end(choose());
}

static void live(struct thread *me)
{
    self = me;
    me->body(me->argument);
    end_thread();
}

static void *run(void *me)
{
    park(me);
    return NULL;
}

/* Python ends its threads so, and has nothing to clean up by then. */
static void world_thread_exit(void *result)
{
    if (self)
        end_thread();
    pthread_exit(result);
}

static struct thread *new_thread(int process)
{
    struct thread *t = NULL;
    for (int i = 0; i < shared->thread_count && shared->thread_count == THREADS_MAX && !t; i++)
        if (shared->threads[i].state == DEAD)
            t = &shared->threads[i];
    if (!t && shared->thread_count == THREADS_MAX)
        finish(OVERFLOWN, "the world has too many threads");
    if (!t)
        t = &shared->threads[shared->thread_count++];
    *t = (struct thread){.id = (int)(t - shared->threads), .process = process, .state = READY, .deadline = NEVER};
    t->priority = (int64_t)(draw() % PRIORITIES);
    return t;
}

static int world_create(pthread_t *out, const pthread_attr_t *attributes, void *(*body)(void *), void *argument)
{
    struct thread *t;
    int rc;
    if (!self)
        return pthread_create(out, attributes, body, argument);
    t = new_thread(self->process);
    t->body = body;
    t->argument = argument;
    t->life = live;
    step(OP_START, t->id, 0, NULL);
    rc = turns_create(t, out, attributes, run);
    if (rc != 0)
        t->state = DEAD;
    maybe_yield();
    return rc;
}

/* The length of a process id reaches files and their names, so a process of a world always has the same. */
static pid_t world_getpid(void)
{
    return mine ? 1000 + (pid_t)(mine - shared->processes) : getpid();
}

const struct replacement thread_replacements[] = {
    {"pthread_mutex_lock", world_lock, 0},
    {"pthread_mutex_unlock", world_unlock, 0},
    {"pthread_cond_wait", world_cond_wait, 0},
    {"pthread_cond_timedwait", world_cond_timedwait, 0},
    {"pthread_cond_signal", world_signal, 0},
    {"pthread_cond_broadcast", world_broadcast, 0},
    {"pthread_create", world_create, 1},
    {"pthread_exit", world_thread_exit, 1},
    {"sem_wait", world_sem_wait, 1},
    {"sem_clockwait", world_sem_clockwait, 1},
    {"sem_timedwait", world_sem_timedwait, 1},
    {"sem_post", world_sem_post, 1},
    {"clock_gettime", world_clock_gettime, 1},
    {"time", world_time, 1},
    {"usleep", world_usleep, 1},
    {"clock_nanosleep", world_clock_nanosleep, 1},
    {"sched_yield", world_sched_yield, 1},
    {"getpid", world_getpid, 1},
    {NULL, NULL, 0},
};

/* --- what Python calls -------------------------------------------------------------------------------------------- */

static void find_interpreter(void)
{
    gil_held = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Check");
    gil_save = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyEval_SaveThread");
    gil_restore = (void (*)(void *))dlsym(RTLD_DEFAULT, "PyEval_RestoreThread");
}

static void join_world(int process, const struct settings *settings)
{
    find_interpreter();
    mine = &shared->processes[process];
    mine->settings = *settings;
    if (settings->full_from != NEVER) { /* times of a plan count from the beginning of the run */
        mine->settings.full_from += shared->now;
        mine->settings.full_to += shared->now;
    }
    mine->alive = 1;
    mine->noticed = 0;
    mine->steps = mine->faults = 0;
    memset(mine->lies, 0, sizeof(mine->lies));
}

/* Begin a world with these settings. The calling thread is its driver: thread 0 of process 0, the only one at first. */
void world_begin(const struct settings *settings)
{
    shared->settings = *settings;
    shared->steps = shared->event_count = 0;
    shared->hash = 0xCBF29CE484222325u;
    shared->finding[0] = 0;
    shared->draws = settings->seed;
    shared->thread_count = shared->connection_count = shared->listener_count = 0;
    memset(shared->cut_off, 0, sizeof(shared->cut_off));
    dying = 0;
    join_world(0, settings);
    mine->turn = 0;
    self = driver = new_thread(0);
    turns_begin(self);
}

/* Prepare the first thread of another process, before it is forked; it passes the number to `world_enter`. */
int world_prepare(int process)
{
    shared->processes[process].alive = 1;
    shared->processes[process].turn = 0;
    return new_thread(process)->id;
}

/* Be the first thread of a process that was forked, from the first turn on. */
void world_enter(int thread, const struct settings *settings)
{
    struct thread *t = &shared->threads[thread];
    self = NULL;
    driver = NULL;
    dying = 0;
    network_inherit();
    disk_inherit();
    mine = &shared->processes[t->process];
    turns_begin(t);
    turns_await(t);
    join_world(t->process, settings);
    self = t;
}

/* End this process, which has nothing left to do, with an exit status. */
void world_exit(int status)
{
    die(status);
}

/* Return the real number of this process, which begins another one. */
int world_parent(void)
{
    return getpid();
}

/* Let this process, which was just forked, end when its parent ends, however that happens. */
void world_end_with(int parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(KILLED); /* it has ended already */
}

/* Leave the world: from here on this thread gets the real functions. */
void world_leave(void)
{
    self = NULL;
}

/* Come back into the world, as the driver that has left it; nobody else had a turn since. */
void world_return(void)
{
    self = driver;
}

/* Let a process die at its n-th call from now on. */
void world_kill(int process, int64_t calls)
{
    shared->processes[process].settings.kill_at = shared->processes[process].steps + calls;
}

/* Let all threads of a process stand still until a time. */
void world_pause(int process, int64_t until)
{
    for (int i = 0; i < shared->thread_count; i++)
        if (shared->threads[i].process == process)
            shared->threads[i].paused_until = until;
}

/* Let the disk of a process have no space from now on, until a time. */
void world_fill(int process, int64_t until)
{
    shared->processes[process].settings.full_from = shared->now;
    shared->processes[process].settings.full_to = until;
}

/* Let the others run until this process is notified (1), the time is reached (0), or the process is to die (2), in
   which case the caller records what it received and exits. A notice: bytes for a peer, or the death of a process. */
int world_wait(int64_t until)
{
    int woken = mine->noticed;
    if (!woken)
        woken = block(driver, until);
    else if (!dying)
        maybe_yield();
    mine->noticed = 0;
    return dying ? 2 : woken;
}

int world_alive(int process)
{
    return shared->processes[process].alive;
}

/* Return how many faults were injected into this process since it began. */
int64_t world_faults(void)
{
    return mine->faults;
}

/* Return how often the disk of a process told a lie of a kind since the process began. */
int64_t world_lies(int process, int kind)
{
    return shared->processes[process].lies[kind];
}

/* Return how many faults were injected into any process, also after its end. */
int64_t world_faults_of(int process)
{
    return shared->processes[process].faults;
}

int64_t world_now(void)
{
    return shared->now;
}

void world_history(const void *record, int64_t size)
{
    if (shared->history_bytes + size > HISTORY_BYTES)
        finish(OVERFLOWN, "the history is full");
    memcpy(shared->history + shared->history_bytes, record, (size_t)size);
    shared->history_bytes += size;
}
