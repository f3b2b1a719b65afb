"""The entry log writer: files `<hex id>.log`, byte-compatible with Apache BookKeeper (docs/formats/entry-log.md).

One thread a writer (the flush thread, or compaction with a writer of its own); any number of writers a directory, which
take their ids from one LogIds. Reading and scanning are modules of their own (log_reader, log_scan); their names can be
had from here too.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.file cimport iovec
from bookie._fast.base.types cimport Status
from bookie._fast.entrylog.ids cimport LogIds, LogUser
from bookie._fast.entrylog.reader cimport EntryLogReaders, elog_forget, elog_read, elog_readers, elog_readers_free
from bookie._fast.entrylog.scan cimport LogRecord, LogScan, elog_scan, log_record_fn

cdef enum:
    MAP_LEDGERS_MAX = 10000      # in one record of the ledgers map
    LOG_BUFFER_BYTES = 0x200000  # of a LogBuffer

cdef struct LogBuffer            # opaque: 2 MiB for direct writes, lent to one writer at a time
cdef struct EntryLogWriter       # opaque: the current log and its ledgers map

# The writers of one thread share one buffer. A writer that another one takes it from writes its whole blocks out and
# keeps the rest, less than 4 KiB; what a writer holds of its own is that, and 32 bytes a ledger of its log. An error of
# that write belongs to the writer whose bytes they are: its next call answers it.
cdef LogBuffer* log_buffer() noexcept nogil
# After the writers that share it.
cdef void log_buffer_free(LogBuffer* buffer) noexcept nogil

# No file is created before the first append. `ids` and `buffer` outlive the writer; `user` tells log_ids_settle whose
# commit covers its logs. NULL without memory.
cdef EntryLogWriter* elog_writer(LogIds* ids, LogUser user, LogBuffer* buffer, uint64_t size_limit) noexcept nogil
# Close without a map: the log ends at its last sync, and is removed when there was none.
cdef void elog_writer_free(EntryLogWriter* writer) noexcept nogil

# For a writer beside hundreds of others: a new log is neither published (log_ids_publish is the caller's, before its
# commit) nor are disk blocks reserved ahead, and its header goes out with its first records.
cdef void elog_one_of_many(EntryLogWriter* writer) noexcept nogil
# What a writer allocates, in bytes; a log of more than 32 ledgers takes 32 more for each.
cdef uint64_t elog_writer_bytes() noexcept nogil

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
# The same for up to SYNCS_MOST writers of one directory, whose syncs share the disk's work.
cdef Status elog_sync_many(EntryLogWriter** writers, int count) noexcept nogil
# The part of elog_sync that only writes: several logs written first and synced then share the disk's work.
cdef Status elog_write_out(EntryLogWriter* writer) noexcept nogil
# Close the current log: ledgers map, header, sync. The next append starts a new log. After NO_SPACE: give the log up as
# it is, without a map, and clear the error, so that the caller may begin again with what it did not commit.
# Closed logs count as open until the caller has committed what points into them: log_ids_settle.
cdef Status elog_rotate(EntryLogWriter* writer) noexcept nogil
# The steps of elog_rotate, to take up to SYNCS_MOST logs through them together: after elog_end of each nothing is
# appended; elog_finish writes the maps, syncs them, then the headers, which must never name a map that is not there.
# Only one of many that was never written before goes out whole, header and map, by one sync: the later steps then find
# nothing to do.
cdef Status elog_end(EntryLogWriter* writer) noexcept nogil
cdef Status elog_finish(EntryLogWriter** writers, int count) noexcept nogil
# Close without a map, at `keep` bytes, which were synced; a log that is complete stays whole. At 0 the file is removed.
# Clears NO_SPACE; after IO_ERROR nothing is touched.
cdef void elog_give_up(EntryLogWriter* writer, uint64_t keep) noexcept nogil
# The log being written, or the id the next append would try. Not for judging other logs: ask log_ids_is_open.
cdef uint32_t elog_current_id(EntryLogWriter* writer) noexcept nogil
# Bytes of the log being written, 0 between logs.
cdef uint64_t elog_size(EntryLogWriter* writer) noexcept nogil
