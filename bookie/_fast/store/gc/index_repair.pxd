"""A damaged index made good while the bookie serves: what can be read moves to a new one, then what was lost returns.

The first half holds `Store.writing`: runs that can be read, ledgers and fences as memory has them, and a doubt for
every ledger that may have lost runs go into a new environment beside the old one, which takes its name and its readers.
A crash leaves either, whole. From then on flushes go on; a ledger in doubt denies nothing. The second half finds its
entries in the entry logs and puts back what nobody has put meanwhile.
"""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from bookie._fast.base.file cimport FileOps
from bookie._fast.base.types cimport Status
from bookie._fast.index.state cimport LocationIndex
from bookie._fast.store.stores cimport Store

cdef struct Repaired:
    uint64_t runs                # that could be read
    uint64_t lost                # values, or parts of the tree, that could not
    uint64_t ledgers             # records put
    uint64_t doubtful            # ledgers that may have lost runs, those of earlier repairs too

# The first half. `old` and `new_` are directories of indexes, the latter without files. After NO_SPACE, CORRUPT or
# NO_MEMORY the old index goes on as it was; IO_ERROR after the rename is fatal.
cdef Status index_salvage(Store* store, FileOps* ops, const char* old, const char* new_, uint64_t map_bytes,
                          Repaired* repaired) noexcept nogil
# The second half, one transaction of it: runs of `found` of ids[count], where nothing is stored. ids[*done] are
# through: in doubt no longer, or for good where `lasting` says so; *from_entry is where the next one goes on, 0 at
# first.
cdef Status index_take_found(Store* store, LocationIndex* found, const int64_t* ids, const uint8_t* lasting,
                             size_t count, size_t* done, int64_t* from_entry) noexcept nogil
