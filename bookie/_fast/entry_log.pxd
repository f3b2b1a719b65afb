"""The entry log writer: files `<hex id>.log`, byte-compatible with Apache BookKeeper (docs/formats/entry-log.md).

One thread a writer (the flush thread, or compaction with a writer of its own). Reading and scanning are rooms of their
own (log_reader, log_scan); their names can be had from here too.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.file cimport FileOps, iovec
from bookie._fast.log_reader cimport EntryLogReaders, elog_forget, elog_read, elog_readers, elog_readers_free
from bookie._fast.log_scan cimport LogRecord, LogScan, elog_scan, log_record_fn
from bookie._fast.types cimport Status

cdef enum:
    MAP_LEDGERS_MAX = 10000      # in one record of the ledgers map

cdef struct EntryLogWriter       # opaque: the current log, its ledgers map, and the next id

# `directory` is the `current` directory; ids start at `next_id`, names that exist are skipped. No file is created
# before the first append. NULL without memory or with a path that is too long.
cdef EntryLogWriter* elog_writer(FileOps* ops, const char* directory, uint32_t next_id,
                                 uint64_t size_limit) noexcept nogil
cdef void elog_writer_free(EntryLogWriter* writer) noexcept nogil

# In a hurry, writes are as large as the disk likes them; else small enough to let a journal's pass between.
cdef void elog_hurry(EntryLogWriter* writer, bint hurry) noexcept nogil
# Append `parts`: records `u32 length | entry` of one ledger, contiguous, `size` bytes in all. Rolls to a new log first
# when they do not fit under the size limit. Answers where the first length word lies. Never splits `parts` over
# logs; `parts` are used up. BAD_REQUEST (they do not sum up to `size`, or no log can hold them) and NO_MEMORY: nothing
# was written. NO_SPACE (disk full, quota) and IO_ERROR poison the writer: everything after answers the same error,
# the caller commits nothing since the last elog_sync. IO_ERROR is for ever; NO_SPACE ends with this log: elog_rotate.
# OK promises a place, not bytes: they may wait in memory and are neither readable nor safe before elog_sync.
cdef Status elog_append(EntryLogWriter* writer, int64_t ledger, iovec* parts, int count, uint64_t size,
                        uint32_t* log_id, uint64_t* offset) noexcept nogil
# Everything appended so far is on disk when this answers OK (rotated logs, their maps and headers, the directory).
cdef Status elog_sync(EntryLogWriter* writer) noexcept nogil
# Close the current log: ledgers map, header, sync. The next append starts a new log. After NO_SPACE: give the log up as
# it is, without a map, and clear the error, so that the caller may begin again with what it did not commit.
cdef Status elog_rotate(EntryLogWriter* writer) noexcept nogil
# The log being written, or the id the next append would try. All logs below it are closed.
cdef uint32_t elog_current_id(EntryLogWriter* writer) noexcept nogil
