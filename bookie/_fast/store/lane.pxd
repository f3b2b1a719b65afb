"""The reads of one connection that wait for a thread of the read pool. State only; `read_pool` has the lock."""

cdef struct Lane:
    void* first              # the oldest PoolJob
    void* last
    Lane* next               # the lane whose turn comes after this one's
