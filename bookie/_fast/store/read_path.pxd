"""Cold reads: runs are looked up in the index, read from the entry logs into memory, and then gathered from there.

Threads of the read pool (module `store.read_pool`).
"""
from libc.stdint cimport int64_t

from bookie._fast.base.types cimport Status
from bookie._fast.index.location cimport IndexReader
from bookie._fast.store.gather cimport Answer, ReadRequest
from bookie._fast.store.loads cimport Loads
from bookie._fast.store.stores cimport Storage

cdef struct Reading:
    # What a read in one store needs.
    Storage* stores
    IndexReader* index       # of the ledger's store; this thread's
    Loads* loads             # shared by all threads

# Gather from memory and then from disk until the request is satisfied or the disk has no more; see `answer.status`.
cdef void answer_from_disk(Reading* reading, ReadRequest* request, Answer* answer) noexcept nogil
# Raise the known LAC of a ledger to the one that earlier processes stored, once per process.
cdef Status learn_lac(Reading* reading, int64_t ledger) noexcept nogil
# Read what follows `entry` into the read cache before it is requested.
cdef void read_ahead(Reading* reading, int64_t ledger, int64_t entry) noexcept nogil
