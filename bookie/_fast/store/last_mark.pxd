"""`lastMark` files: up to where each journal is in the entry logs of a ledger directory. Named as upstream's, which
reads the first 16 bytes; ours add a checksum and a generation (docs/formats/journal.md).
"""
from libc.stdint cimport int64_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.store.stores cimport Store, Storage

# Write each journal's mark, file id and offset, durably into the directory of one store, under the present generation.
# OK, NO_SPACE (noted in the store) or IO_ERROR; a mark that was not written is the old one.
cdef Status marks_write(Storage* stores, Store* store, const int64_t* ids, const uint64_t* offsets) noexcept nogil
# The same over the marks that are there, which a full disk takes as a rule: no block and no name is new. Of a write
# that was torn nothing is believed, and the directory is replayed from the oldest journal file, which is old enough for
# all of these marks. NO_SPACE also where a mark is not there yet.
cdef Status marks_overwrite(Storage* stores, Store* store, const int64_t* ids, const uint64_t* offsets) noexcept nogil
# Whether marks_overwrite may be expected to succeed: each mark written over with what it says. As marks_overwrite.
cdef Status marks_probe(Storage* stores, Store* store) noexcept nogil
# Retire the journal files that every directory's mark has passed.
cdef void marks_trim(Storage* stores) noexcept nogil
