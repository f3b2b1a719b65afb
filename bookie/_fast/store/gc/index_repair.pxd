"""Repairs a damaged index while the bookie serves: readable runs move to a new index, then lost ones are found again.

The first half holds `Store.writing`: it writes the readable runs, the ledgers and fences that memory has, and a doubt
for every ledger that may have lost runs to a new environment, which takes the old one's name and readers. A crash
leaves one of the two intact. From then on flushes continue, and no entry of a ledger in doubt is denied. The second
half puts back the entries of these ledgers that the caller found in the entry logs, unless they were written again
meanwhile.
"""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from bookie._fast.base.file cimport FileOps
from bookie._fast.base.types cimport Status
from bookie._fast.index.state cimport LocationIndex
from bookie._fast.store.stores cimport Store

cdef struct Repaired:
    uint64_t runs                # that were readable
    uint64_t lost                # values or parts of the tree that were not
    uint64_t ledgers             # records put
    uint64_t doubtful            # ledgers that may have lost runs, including those of earlier repairs

# The first half. `old` and `new_` are index directories, `new_` without files. After NO_SPACE, CORRUPT or NO_MEMORY
# the old index continues unchanged; IO_ERROR after the rename is fatal.
cdef Status index_salvage(Store* store, FileOps* ops, const char* old, const char* new_, uint64_t map_bytes,
                          Repaired* repaired) noexcept nogil
# The second half, one transaction: put runs of `found` for ids[count] where nothing is stored. ids[*done] are complete
# then: not in doubt any more, or for good if `lasting` says so. *from_entry is where the next call continues, 0 at
# first.
cdef Status index_take_found(Store* store, LocationIndex* found, const int64_t* ids, const uint8_t* lasting,
                             size_t count, size_t* done, int64_t* from_entry) noexcept nogil
