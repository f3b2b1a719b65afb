"""The verified scan of a journal file, versions 1 to 6, written by this project or by Apache BookKeeper.

docs/formats/journal.md has the format. A group of ours ends in a padding record with its checksum; its records are
passed on only after that matched. Up to 64 MiB of a group are held in memory meanwhile; a larger one, up to the 4 GiB
that its size field allows, is read twice. Any thread; nothing is cached.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.file cimport FileOps
from bookie._fast.base.types cimport Status

cdef enum:
    # The second i64 of a journal record is an entry id or one of these kinds.
    META_KEY = -0x1000
    META_FENCE = -0x2000
    META_FORCE = -0x4000
    META_LAC = -0x8000
    PADDING_MARK = -0x100
    JOURNAL_HEADER_BYTES = 512
    JOURNAL_VERSION = 6
    JOURNAL_MAGIC = 0x424B4C47       # BKLG
    # BKGC, at byte 8 of the file header: every group of this file is closed. Apache BookKeeper writes zeros there and
    # ignores them. The same word follows the length of a padding record that closes a group.
    GROUP_MAGIC = 0x424B4743
    GROUP_MARK_AT = 8
    GROUP_CLOSE_BYTES = 24           # u32 magic | u32 crc32c | u32 group bytes | u32 group start | i64 journal id
    GROUP_PAD_MIN = 32               # mark, length and the closing fields: the minimum padding at the end of a group

cdef struct JournalRecord:
    int64_t ledger
    int64_t kind                     # >= 0: an entry id; else META_*
    uint64_t position                # of the length word
    uint32_t length
    const uint8_t* data              # the record without its length word; valid during the callback only

cdef struct JournalScan:
    int version
    uint64_t end                     # everything in this file before this position was passed on
    uint64_t records
    uint64_t groups                  # with a checksum
    bint torn                        # the tail is cut off: normal for the last file only
    bint damaged                     # a bad record or group is followed by a good one, or a length is impossible
    uint64_t damaged_at

ctypedef Status (*journal_record_fn)(void* context, const JournalRecord* record) noexcept nogil

# Scan from `start` on; 0 means after the header. `journal_id` is the file's id, which each group must carry. Return OK
# with `result` filled in (check torn and damaged), IO_ERROR, NO_MEMORY, CORRUPT (not a journal, or an unknown
# version), or the status with which `each` ended the scan.
cdef Status journal_scan(FileOps* ops, int fd, int64_t journal_id, uint64_t start, journal_record_fn each,
                         void* context, JournalScan* result) noexcept nogil
# Return the checksum of a group: everything from its first record to the GROUP_MAGIC word, that is, the records and
# mark and length of the padding. `size` counts all of it and is the value of the field `group bytes`, so the magic
# lies at group start + group bytes. CRC32C over these bytes, then over the last 16 of the 24 at `closing` (group
# bytes, group start, journal id).
cdef uint32_t group_crc(const uint8_t* group, size_t size, const uint8_t* closing) noexcept nogil
# Write the 512 bytes with which a file of ours begins: BKLG, version 6, the group mark, zeros.
cdef void journal_header(uint8_t* block) noexcept nogil
