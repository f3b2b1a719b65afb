"""Verified scan of a journal file, versions 1 to 6, written by us or by Apache BookKeeper (docs/formats/journal.md).

A group written by us ends in a padding record that carries its checksum; its records are handed on only after it
matched. It may be as large as its 32 bits tell: up to 64 MiB are held meanwhile, a larger one is read twice. Any
thread; nothing is cached.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.file cimport FileOps
from bookie._fast.base.types cimport Status

cdef enum:
    # The second i64 of a journal record selects its kind (storage-formats: journal records).
    META_KEY = -0x1000
    META_FENCE = -0x2000
    META_FORCE = -0x4000
    META_LAC = -0x8000
    PADDING_MARK = -0x100
    JOURNAL_HEADER_BYTES = 512
    JOURNAL_VERSION = 6
    JOURNAL_MAGIC = 0x424B4C47       # BKLG
    # BKGC, at byte 8 of the header: every group of this file is closed. Upstream writes zeros there and does not look.
    # The same word inside a padding record, right after its length: what closes a group.
    GROUP_MAGIC = 0x424B4743
    GROUP_MARK_AT = 8
    GROUP_CLOSE_BYTES = 24           # u32 magic | u32 crc32c | u32 group bytes | u32 group start | i64 journal id
    GROUP_PAD_MIN = 32               # mark, length and the closing fields: the least padding a group ends with

cdef struct JournalRecord:
    int64_t ledger
    int64_t kind                     # >= 0: an entry id; else META_*
    uint64_t position                # of the length word
    uint32_t length
    const uint8_t* data              # the record without its length word; valid during the callback only

cdef struct JournalScan:
    int version
    uint64_t end                     # replay of this file is complete up to here
    uint64_t records
    uint64_t groups                  # that carried a checksum
    bint torn                        # the tail was cut off: regular for the last file only
    bint damaged                     # a bad record or group is followed by a good one, or a length is impossible
    uint64_t damaged_at

ctypedef Status (*journal_record_fn)(void* context, const JournalRecord* record) noexcept nogil

# `start` = 0 means after the header. `journal_id` is the file's id, checked against each group's closing fields.
# OK with `result` filled (look at torn and damaged), IO_ERROR, NO_MEMORY, CORRUPT (no journal, unknown version), or
# what `each` answered.
cdef Status journal_scan(FileOps* ops, int fd, int64_t journal_id, uint64_t start, journal_record_fn each,
                         void* context, JournalScan* result) noexcept nogil
# A group is everything from its first record to the GROUP_MAGIC word: the records, the padding mark and length. `size`
# counts all of it and is what the field `group bytes` holds, so that group start + group bytes = where the magic lies.
# crc32c over these bytes, then over the last 16 of the 24 bytes at `closing` (group bytes, group start, journal id).
cdef uint32_t group_crc(const uint8_t* group, size_t size, const uint8_t* closing) noexcept nogil
# The 512 bytes every file of ours starts with: BKLG, version 6, the group mark, zeros.
cdef void journal_header(uint8_t* block) noexcept nogil
