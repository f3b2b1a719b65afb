"""Cold reads: runs found in the index, brought from the entry logs into memory, then gathered like all others.

Threads of the read pool (module `store.read_pool`).
"""
from libc.stdint cimport int64_t

from bookie._fast.base.types cimport Status
from bookie._fast.index.location cimport IndexReader
from bookie._fast.store.gather cimport Answer, ReadRequest
from bookie._fast.store.loads cimport Loads
from bookie._fast.store.stores cimport Storage

cdef struct Reading:
    # What a read of one store needs.
    Storage* stores
    IndexReader* index       # of the ledger's store; this thread's
    Loads* loads             # all threads'

# Memory first, then the disk, until the request is satisfied or the disk has no more: `answer.status` tells.
cdef void answer_from_disk(Reading* reading, ReadRequest* request, Answer* answer) noexcept nogil
# Bring the LAC of a ledger up to what earlier processes stored, once per process.
cdef Status learn_lac(Reading* reading, int64_t ledger) noexcept nogil
# Bring what follows from `entry` on into the read cache before it is asked for.
cdef void read_ahead(Reading* reading, int64_t ledger, int64_t entry) noexcept nogil
