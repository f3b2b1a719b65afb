/* Names for the compiler's atomic builtins, so that Cython can call them on plain integers. */
#ifndef BOOKIE_ATOMICS_H
#define BOOKIE_ATOMICS_H
#define bk_load(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define bk_store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define bk_add(p, v) __atomic_add_fetch((p), (v), __ATOMIC_ACQ_REL)
#define bk_add_relaxed(p, v) __atomic_add_fetch((p), (v), __ATOMIC_RELAXED)
#define bk_exchange(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define bk_fence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif
