"""Ensures that a span is read from disk once: a small table, which is scanned under one lock."""
from libc.stdint cimport int64_t, uint32_t

from bookie._fast.base.sync cimport (
    cond_init,
    pthread_cond_broadcast,
    pthread_cond_wait,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)


cdef void loads_init(Loads* loads) noexcept nogil:
    loads.count = 0
    pthread_mutex_init(&loads.lock, NULL)
    cond_init(&loads.done)


cdef bint under_way(const Loads* loads, int64_t ledger, int64_t entry) noexcept nogil:
    cdef uint32_t i
    for i in range(loads.count):
        if loads.spans[i].ledger == ledger and loads.spans[i].first <= entry <= loads.spans[i].last:
            return True
    return False


cdef bint load_begin(Loads* loads, int64_t ledger, int64_t first, int64_t last) noexcept nogil:
    cdef bint waited = False
    cdef Load* span
    pthread_mutex_lock(&loads.lock)
    while under_way(loads, ledger, first):
        waited = True
        pthread_cond_wait(&loads.done, &loads.lock)
    if not waited and loads.count < LOADS_MOST:
        span = &loads.spans[loads.count]
        span.ledger = ledger
        span.first = first
        span.last = last
        loads.count += 1
    pthread_mutex_unlock(&loads.lock)
    return not waited


cdef int64_t load_before(Loads* loads, int64_t ledger, int64_t first) noexcept nogil:
    cdef int64_t entries = 0
    cdef uint32_t i
    pthread_mutex_lock(&loads.lock)
    for i in range(loads.count):
        if loads.spans[i].ledger == ledger and loads.spans[i].last + 1 == first:
            entries = first - loads.spans[i].first
            break
    pthread_mutex_unlock(&loads.lock)
    return entries


cdef void load_end(Loads* loads, int64_t ledger, int64_t first) noexcept nogil:
    cdef uint32_t i
    pthread_mutex_lock(&loads.lock)
    for i in range(loads.count):
        if loads.spans[i].ledger == ledger and loads.spans[i].first == first:
            loads.count -= 1
            loads.spans[i] = loads.spans[loads.count]
            break
    pthread_cond_broadcast(&loads.done)
    pthread_mutex_unlock(&loads.lock)
