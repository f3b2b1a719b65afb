"""Handing a job to a flusher, and waiting for its end."""
from libc.stdint cimport uint32_t

from bookie._fast.base.sync cimport (
    pthread_cond_broadcast,
    pthread_cond_signal,
    pthread_cond_wait,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)
from bookie._fast.base.types cimport IO_ERROR, OK
from bookie._fast.store.storage cimport StorageEngine


cdef void flusher_begin(Storage* stores, Store* store, FlushWork work) noexcept nogil:
    cdef FlushJob* job = &store.job
    cdef bint served
    pthread_mutex_lock(&job.lock)
    while job.busy:
        pthread_cond_wait(&job.changed, &job.lock)
    served = job.served
    if served:
        job.work = <void*> work
        job.busy = True
        pthread_cond_broadcast(&job.changed)
    pthread_mutex_unlock(&job.lock)
    if not served:
        job.status = work(stores, store)


cdef bint flusher_is_idle(Store* store) noexcept nogil:
    cdef FlushJob* job = &store.job
    cdef bint idle
    pthread_mutex_lock(&job.lock)
    idle = not job.busy
    pthread_mutex_unlock(&job.lock)
    return idle


cdef Status flusher_end(Store* store) noexcept nogil:
    cdef FlushJob* job = &store.job
    cdef Status status
    pthread_mutex_lock(&job.lock)
    while job.busy:
        pthread_cond_wait(&job.changed, &job.lock)
    status = job.status
    job.status = OK
    pthread_mutex_unlock(&job.lock)
    return status


cdef void flush_everywhere(Storage* stores, FlushWork work, Status* found) noexcept nogil:
    cdef uint32_t last = stores.count - 1
    cdef uint32_t i
    for i in range(last):
        flusher_begin(stores, stores.stores[i], work)
    found[last] = work(stores, stores.stores[last])
    for i in range(last):
        found[i] = flusher_end(stores.stores[i])


cdef void tell_flush_thread(Storage* stores) noexcept nogil:
    pthread_mutex_lock(&stores.flush_lock)
    pthread_cond_signal(&stores.flush_wanted)
    pthread_mutex_unlock(&stores.flush_lock)


cdef class Flushers:
    """The flushers of all ledger directories. `run` is the body of a thread, one for each, until `stop`."""

    def __init__(self, StorageEngine stores):
        """Let jobs wait for the threads from now on, even if these have not begun yet."""
        cdef uint32_t i
        self.stores_room = stores
        self.stores = stores.stores
        for i in range(self.stores.count):
            self.serve(&self.stores.stores[i].job, True)

    cdef void serve(self, FlushJob* job, bint served) noexcept nogil:
        pthread_mutex_lock(&job.lock)
        job.served = served
        pthread_cond_broadcast(&job.changed)
        pthread_mutex_unlock(&job.lock)

    def run(self, at: int) -> None:
        """Do the jobs of directory number `at`. A job that was given before `stop` is done."""
        cdef Store* store = self.stores.stores[at]
        cdef FlushJob* job = &store.job
        cdef FlushWork work
        cdef Status status
        with nogil:
            pthread_mutex_lock(&job.lock)
            while job.work != NULL or job.served:
                if job.work == NULL:
                    pthread_cond_wait(&job.changed, &job.lock)
                    continue
                work = <FlushWork> job.work
                job.work = NULL
                pthread_mutex_unlock(&job.lock)
                status = work(self.stores, store)
                pthread_mutex_lock(&job.lock)
                job.status = status
                job.busy = False
                pthread_cond_broadcast(&job.changed)
                pthread_mutex_unlock(&job.lock)
                tell_flush_thread(self.stores)
                pthread_mutex_lock(&job.lock)
            pthread_mutex_unlock(&job.lock)

    def stop(self) -> None:
        """Let the threads end, each after its job. Jobs that are given from now on are done by who gives them."""
        cdef uint32_t i
        with nogil:
            for i in range(self.stores.count):
                self.serve(&self.stores.stores[i].job, False)


def end_flushes(StorageEngine stores) -> None:
    """Wait for the flushes that a replay has begun. OSError if one failed to write; the others can be repeated."""
    cdef uint32_t i
    cdef bint failed = False
    with nogil:
        for i in range(stores.stores.count):
            failed |= flusher_end(stores.stores.stores[i]) == IO_ERROR
    if failed:
        raise OSError(5, "cannot flush the entries of the journals: entry log or index was not written")
