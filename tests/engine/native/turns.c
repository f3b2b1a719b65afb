/* How the turn goes from one thread to another.

   Within a process it goes without the kernel, which would take a hundred times longer. All threads of a process are
   carried by its first kernel thread, which goes on with the stack and the thread-local storage of the thread whose
   turn it is. The kernel thread that was created for a thread is parked above its stack for good: if it ended, its place
   in memory would be given away at a moment that no seed decides. Between processes the turn goes by a futex.

   Where a program may not set the register of thread-local storage, each thread runs on its own kernel thread, and
   waits for its turn at a futex. The worlds are the same. */
#define _GNU_SOURCE
#include "world.h"

#include <linux/futex.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

enum { FSGSBASE = 2, APART = 2048, SPARES = 64, SPARE_STACK = 512 << 10 };

/* A kernel thread that was parked before its thread was created. */
struct spare {
    pthread_t number;
    void *top;
    uint32_t parked;
};

static struct spare spares[SPARES];
static int spare_count, spares_used, created;
static uintptr_t first_storage;

static void await(uint32_t *futex)
{
    while (!__atomic_load_n(futex, __ATOMIC_ACQUIRE))
        syscall(SYS_futex, futex, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static void allow(uint32_t *futex)
{
    __atomic_store_n(futex, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, futex, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void await_turn(uint32_t *turn)
{
    await(turn);
    *turn = 0;
}

#ifdef __x86_64__
/* Push what a function keeps, note the stack, and go on with another one and its thread-local storage. */
__attribute__((naked, noinline)) static void swap(void **left __attribute__((unused)), void *stack __attribute__((unused)),
                                                  uintptr_t storage __attribute__((unused)))
{
    __asm__("push %rbp\n\tpush %rbx\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n\t"
            "mov %rsp, (%rdi)\n\twrfsbase %rdx\n\tmov %rsi, %rsp\n\t"
            "pop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbx\n\tpop %rbp\n\tret");
}

__attribute__((naked, noinline)) static void first_turn(void)
{
    __asm__("mov %r12, %rdi\n\tcall *%r13\n\tud2");
}

static void *fresh_stack(void *top, struct thread *t, void (*begin)(struct thread *))
{
    void **stack = (void **)(((uintptr_t)top - APART) & ~(uintptr_t)15);
    *--stack = (void *)first_turn;
    *--stack = NULL;            /* rbp, rbx */
    *--stack = NULL;
    *--stack = t;               /* r12 */
    *--stack = (void *)begin;   /* r13 */
    *--stack = NULL;            /* r14, r15 */
    *--stack = NULL;
    return stack;
}

static int carries(void)
{
    static int known = -1;
    if (known < 0)
        known = (getauxval(AT_HWCAP2) & FSGSBASE) != 0;
    return known;
}
#else
static void swap(void **left, void *stack, uintptr_t storage)
{
    (void)left, (void)stack, (void)storage;
}

static void *fresh_stack(void *top, struct thread *t, void (*begin)(struct thread *))
{
    (void)top, (void)t, (void)begin;
    return NULL;
}

static int carries(void)
{
    return 0;
}
#endif

static void began(struct thread *t)
{
    t->life(t);
}

/* Be the kernel thread of a new thread. Returns if it is not carried, and has ended. */
void park(struct thread *t)
{
    uint32_t never = 0;
    sigset_t all;
    if (!carries()) {
        await_turn(&t->turn);
        t->life(t);
        return;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL); /* a handler would run on a stack that is in use */
    t->storage = (uintptr_t)pthread_self();
    t->stack = fresh_stack(&never, t, began);
    allow(&t->parked);
    await(&never);
}

static void *park_spare(void *given)
{
    struct spare *spare = given;
    uint32_t never = 0;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    spare->top = &never;
    allow(&spare->parked);
    await(&never);
    return NULL;
}

/* Park kernel threads for the threads to come. Return whether threads can be carried. */
int turns_park_spares(void)
{
    pthread_attr_t attributes;
    first_storage = (uintptr_t)pthread_self();
    if (!carries())
        return 0;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, SPARE_STACK);
    while (spare_count < SPARES &&
           pthread_create(&spares[spare_count].number, &attributes, park_spare, &spares[spare_count]) == 0)
        await(&spares[spare_count++].parked);
    pthread_attr_destroy(&attributes);
    return 1;
}

/* Return how many threads were created for which no kernel thread was left. */
int turns_created(void)
{
    return created;
}

/* Create what carries a thread. */
int turns_create(struct thread *t, pthread_t *out, const pthread_attr_t *attributes, void *(*body)(void *))
{
    struct spare *spare = &spares[spares_used];
    if (spares_used == spare_count) {
        created++;
        return pthread_create(out, attributes, body, t);
    }
    spares_used++;
    *out = spare->number;
    t->storage = (uintptr_t)spare->number;
    t->stack = fresh_stack(spare->top, t, began);
    t->parked = 1;
    return 0;
}

/* Go on with a function on another stack, in the role of the first thread, and note this stack. */
void turns_call(void *top, void (*function)(void), void **left)
{
    swap(left, fresh_stack(top, NULL, (void (*)(struct thread *))function), first_storage);
}

/* Go on with a stack that `turns_call` has noted. */
void turns_resume(void *stack)
{
    void *nowhere;
    swap(&nowhere, stack, first_storage);
}

/* Make this kernel thread the carrier of its process, in the role of its first thread. */
void turns_begin(struct thread *t)
{
    t->storage = (uintptr_t)pthread_self();
    t->parked = 1;
}

void turns_await(struct thread *t)
{
    await_turn(carries() ? &mine->turn : &t->turn);
}

/* Let a thread of another process run. */
void turns_give(struct thread *next)
{
    struct process *other = &shared->processes[next->process];
    other->next = next->id;
    allow(carries() ? &other->turn : &next->turn);
}

static void carry(struct thread *me, struct thread *next)
{
    void *nowhere;
    await(&next->parked);
    swap(me ? &me->stack : &nowhere, next->stack, next->storage);
}

/* Let `next` run, and return when it is the turn of `me` again. */
void turns_pass(struct thread *me, struct thread *next)
{
    if (!carries()) {
        allow(&next->turn);
        await_turn(&me->turn);
        return;
    }
    if (&shared->processes[next->process] != mine) {
        turns_give(next);
        await_turn(&mine->turn);
        next = &shared->threads[mine->next];
    }
    if (next != me)
        carry(me, next);
}

/* Let `next` run after a thread of this process has ended. Does not return if the threads are carried. */
void turns_end(struct thread *next)
{
    if (!carries()) {
        allow(&next->turn);
        return;
    }
    if (&shared->processes[next->process] != mine) {
        turns_give(next);
        await_turn(&mine->turn);
        next = &shared->threads[mine->next];
    }
    carry(NULL, next);
}
