"""Who waits for the end of which pending add of one ledger."""
import threading

_Lock = type(threading.Lock())


cdef class AddWaiters:
    """The callers by entry id."""

    def __cinit__(self):
        self.by_id = {}

    def __len__(self):
        return sum(map(len, self.by_id.values()))

    cdef int enter(self, int64_t id, one) except -1:
        self.by_id.setdefault(id, []).append(one)
        return 0

    cdef int leave(self, int64_t id, one) except -1:
        waiting = self.by_id.get(id)
        if waiting is not None and one in waiting:
            waiting.remove(one)
            if not waiting:
                del self.by_id[id]
        return 0

    cdef int wake(self, int64_t first, int64_t end) except -1:
        cdef int64_t id
        if not self.by_id:
            return 0
        for id in range(first, end):
            for one in self.by_id.pop(id, ()):
                if type(one) is _Lock:
                    one.release()
                elif not one.done():
                    one.set_result(None)
        return 0

    cdef int wake_all(self) except -1:
        for id in sorted(self.by_id):
            self.wake(id, id + 1)
        return 0
