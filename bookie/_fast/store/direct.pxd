"""The stores and a journal without sockets: Python makes the calls that an I/O loop would make.

For tests and tools that work on a bookie's directories. One Python thread at a time for each object; the modules below
synchronise themselves. The memory of a `read` stays pinned until it is released.
"""
from bookie._fast.base.waker cimport Waker
from bookie._fast.journal.commit cimport JournalCommitter
from bookie._fast.store.gather cimport Answer
from bookie._fast.store.read_pool cimport Inbox, ReadPool
from bookie._fast.store.read_queue cimport ReadQueue
from bookie._fast.store.stores cimport Storage

cdef class JournalWriter:
    cdef JournalCommitter committer
    cdef Waker waker         # woken once for each published group

cdef class Held:
    cdef Answer answer

cdef class Direct:
    cdef object stores_room
    cdef object pool_room
    cdef Storage* stores
    cdef ReadPool* pool      # NULL: only what is in memory can be read
    cdef Inbox inbox
    cdef ReadQueue queue
    cdef Waker waker
