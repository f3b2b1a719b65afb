"""A counter, an example and a condition under one lock, which suffices because damage is rare."""
from libc.string cimport memset

from bookie._fast.base.sync cimport (
    bk_add_relaxed,
    bk_load,
    bk_store,
    cond_init,
    cond_wait_until,
    pthread_cond_broadcast,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)


cdef void damage_init(IndexDamage* damage) noexcept nogil:
    memset(damage, 0, sizeof(IndexDamage))
    pthread_mutex_init(&damage.lock, NULL)
    cond_init(&damage.noted)


cdef void damage_note(IndexDamage* damage, int64_t ledger) noexcept nogil:
    bk_add_relaxed(&damage.total, 1)
    pthread_mutex_lock(&damage.lock)
    if damage.fresh == 0:
        damage.ledger = ledger
    damage.fresh += 1
    if not bk_load(&damage.pending):
        bk_store(&damage.pending, 1)
        pthread_cond_broadcast(&damage.noted)
    pthread_mutex_unlock(&damage.lock)


cdef void damage_begin_repair(IndexDamage* damage) noexcept nogil:
    bk_store(&damage.pending, 0)


cdef bint damage_wait(IndexDamage* damage, int64_t deadline_ns) noexcept nogil:
    cdef bint late = False
    pthread_mutex_lock(&damage.lock)
    while not bk_load(&damage.pending) and not damage.stopping and not late:
        late = cond_wait_until(&damage.noted, &damage.lock, deadline_ns) != 0
    pthread_mutex_unlock(&damage.lock)
    return bk_load(&damage.pending) != 0


cdef void damage_stop(IndexDamage* damage) noexcept nogil:
    pthread_mutex_lock(&damage.lock)
    damage.stopping = True
    pthread_cond_broadcast(&damage.noted)
    pthread_mutex_unlock(&damage.lock)


cdef object damage_take(IndexDamage* damage):
    cdef int64_t fresh, ledger
    if bk_load(&damage.fresh) == 0:
        return None
    with nogil:
        pthread_mutex_lock(&damage.lock)
        fresh, ledger = damage.fresh, damage.ledger
        damage.fresh = 0
        pthread_mutex_unlock(&damage.lock)
    return fresh, ledger
