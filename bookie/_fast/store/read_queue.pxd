"""The reads of one connection that wait for a thread of a ledger directory. State only; `read_pool` has the lock."""

cdef struct ReadQueue:
    void* first              # the oldest PoolJob
    void* last
    ReadQueue* next          # the queue whose turn comes after this one's, and the one before
    ReadQueue* previous
