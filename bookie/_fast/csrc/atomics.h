/*
 * Names for the compiler's atomic builtins, so that Cython can call them on plain integers and pointers.
 *
 * Loads acquire and stores release: a thread that sees a value also sees everything written before it. This does not
 * order a store and a later load of another variable. If two threads each store to one variable and then load the
 * other's, and at least one of them must see the other's store, both need bk_fence between store and load. As an
 * alternative, both exchange the same word: the later exchange sees everything written before the earlier one.
 */
#ifndef BOOKIE_ATOMICS_H
#define BOOKIE_ATOMICS_H
#define bk_load(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define bk_store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
/* For a counter that one thread increments and any thread reads. */
#define bk_count(p, v) __atomic_store_n((p), *(p) + (v), __ATOMIC_RELAXED)
#define bk_add(p, v) __atomic_add_fetch((p), (v), __ATOMIC_ACQ_REL)
#define bk_add_relaxed(p, v) __atomic_add_fetch((p), (v), __ATOMIC_RELAXED)
#define bk_exchange(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define bk_fence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif
