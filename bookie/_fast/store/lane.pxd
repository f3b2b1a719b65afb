"""The reads of one connection that no thread of the read pool has taken yet. State only: `read_pool` has the lock."""

cdef struct Lane:
    void* first              # a PoolJob; the oldest
    void* last
    Lane* next               # the one whose turn comes after this one's
