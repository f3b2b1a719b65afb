/*
 * Names for the compiler's atomic builtins, so that Cython can call them on plain integers and pointers.
 *
 * A load acquires and a store releases: who sees a value sees all that was written before it. That orders nothing
 * between a store and a later load of something else. Where two threads each say something and then look for what the
 * other said, one of them must see it: both put bk_fence between, or both say it by an exchange of the same word, of
 * which the later one sees all that came before the earlier one.
 */
#ifndef BOOKIE_ATOMICS_H
#define BOOKIE_ATOMICS_H
#define bk_load(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define bk_store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
/* A count that one thread writes and any thread reads. */
#define bk_count(p, v) __atomic_store_n((p), *(p) + (v), __ATOMIC_RELAXED)
#define bk_add(p, v) __atomic_add_fetch((p), (v), __ATOMIC_ACQ_REL)
#define bk_add_relaxed(p, v) __atomic_add_fetch((p), (v), __ATOMIC_RELAXED)
#define bk_exchange(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define bk_fence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif
