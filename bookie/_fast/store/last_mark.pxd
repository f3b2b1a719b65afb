"""`lastMark` files: up to which position each journal is covered by the entry logs of a ledger directory.

Name and the first 16 bytes are those of Apache BookKeeper; a checksum and a generation follow
(docs/formats/journal.md).
"""
from libc.stdint cimport int64_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.store.stores cimport Storage, Store

# Write the mark (file id and offset) of each journal durably into the directory of one store, with the current
# generation. OK, NO_SPACE (recorded in the store) or IO_ERROR; a mark that was not written is unchanged.
cdef Status marks_write(Storage* stores, Store* store, const int64_t* ids, const uint64_t* offsets) noexcept nogil
# The same by overwriting the existing marks, which a full disk normally allows: it needs no new block and no new name.
# A torn write invalidates the mark, and the directory is replayed from the oldest journal file, which is old enough
# for all of these marks. NO_SPACE also if a mark does not exist yet.
cdef Status marks_overwrite(Storage* stores, Store* store, const int64_t* ids, const uint64_t* offsets) noexcept nogil
# Test whether marks_overwrite can be expected to succeed, by overwriting each mark with itself. Returns the same.
cdef Status marks_probe(Storage* stores, Store* store) noexcept nogil
# Retire the journal files that the marks of all directories have passed.
cdef void marks_trim(Storage* stores) noexcept nogil
