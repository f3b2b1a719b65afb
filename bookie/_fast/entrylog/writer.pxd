"""The entry log writer: files `<hex id>.log`, byte-compatible with Apache BookKeeper (docs/formats/entry-log.md).

One thread for each writer (that of flushes, or compaction with a writer of its own). A directory may have any number
of writers, which get their ids from one LogIds.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.base.file cimport iovec
from bookie._fast.base.types cimport Status
from bookie._fast.entrylog.ids cimport LogIds, LogUser
from bookie._fast.entrylog.reader cimport EntryLogReaders, readers_forget, readers_free, readers_new, readers_read
from bookie._fast.entrylog.scan cimport LogRecord, LogScan, log_record_fn, scan_log

cdef enum:
    MAP_LEDGERS_MAX = 10000      # ledgers in one record of the ledgers map
    LOG_BUFFER_BYTES = 0x200000  # size of a LogBuffer

cdef struct LogBuffer            # opaque: 2 MiB for direct writes, used by one writer at a time
cdef struct EntryLogWriter       # opaque: the current log and its ledgers map

# The writers of one thread share a buffer. When another writer takes it, a writer writes out its whole blocks and
# keeps the rest, less than 4 KiB; besides that it owns 32 bytes for each ledger of its log. If that write fails, the
# next call of the writer whose bytes they are returns the error.
cdef LogBuffer* log_buffer() noexcept nogil
# Free it after the writers that share it.
cdef void log_buffer_free(LogBuffer* buffer) noexcept nogil

# Create a writer; the first append creates a file. `ids` and `buffer` outlive the writer; `user` tells log_ids_settle
# whose commit covers its logs. Return NULL if there is no memory.
cdef EntryLogWriter* writer_new(LogIds* ids, LogUser user, LogBuffer* buffer, uint64_t size_limit) noexcept nogil
# Free the writer without writing a map: its log ends at its last sync, and is removed if there was none.
cdef void writer_free(EntryLogWriter* writer) noexcept nogil

# For one of hundreds of writers: a new log is not published (the caller calls log_ids_publish before its commit), no
# disk blocks are reserved ahead, and the header is written together with the first records.
cdef void writer_one_of_many(EntryLogWriter* writer) noexcept nogil
# Return the bytes that a writer allocates; a log of more than 32 ledgers takes 32 more for each.
cdef uint64_t writer_bytes() noexcept nogil

# With `hurry`, writes have the size that is best for the disk; else they are small enough not to delay the journal.
cdef void writer_hurry(EntryLogWriter* writer, bint hurry) noexcept nogil
# Append `parts`, which are consumed: contiguous records `u32 length | entry` of one ledger, `size` bytes in total. If
# they do not fit under the size limit, a new log is begun first; they are never split. `offset` gets the position of
# the first length word. BAD_REQUEST (`size` is wrong, or no log can hold them) and NO_MEMORY: nothing was written.
# NO_SPACE (disk full, quota) and IO_ERROR poison the writer: all later calls return the same, and the caller must not
# commit anything since the last writer_sync. IO_ERROR stays for ever; NO_SPACE ends with the log (writer_rotate). After
# OK the bytes may still be in memory, neither readable nor safe before writer_sync.
cdef Status writer_append(EntryLogWriter* writer, int64_t ledger, iovec* parts, int count, uint64_t size,
                          uint32_t* log_id, uint64_t* offset) noexcept nogil
# After OK, everything appended so far is on disk (also rotated logs, their maps and headers, and the directory).
cdef Status writer_sync(EntryLogWriter* writer) noexcept nogil
# The same for up to SYNCS_MOST writers of one directory, whose syncs share the disk's work.
cdef Status writers_sync(EntryLogWriter** writers, int count) noexcept nogil
# Only write what writer_sync would sync: logs that are written first and synced afterwards share the disk's work.
cdef Status writer_write_out(EntryLogWriter* writer) noexcept nogil
# Close the current log: ledgers map, header, sync. The next append begins a new log. After NO_SPACE, close the log as
# it is, without a map, and clear the error, so that the caller can repeat what it did not commit. Closed logs count as
# open until the caller has committed the index that points into them: log_ids_settle.
cdef Status writer_rotate(EntryLogWriter* writer) noexcept nogil
# The steps of writer_rotate, for up to SYNCS_MOST logs together. After writer_end, nothing may be appended to the log;
# writers_finish writes the maps, syncs them, and then writes the headers, which must never name a map that is not on
# disk. Only a log of writer_one_of_many that was never written before is written whole, with header and map, and synced
# once; the later steps then have nothing to do.
cdef Status writer_end(EntryLogWriter* writer) noexcept nogil
cdef Status writers_finish(EntryLogWriter** writers, int count) noexcept nogil
# Close the log without a map at `keep` bytes, which were synced; a complete log stays whole. At 0 the file is removed.
# Clears NO_SPACE; does nothing after IO_ERROR.
cdef void writer_give_up(EntryLogWriter* writer, uint64_t keep) noexcept nogil
# Return the id of the log being written, or the id that the next append would try. To judge others: log_ids_is_open.
cdef uint32_t writer_log_id(EntryLogWriter* writer) noexcept nogil
# Return the size of the log being written; 0 between logs.
cdef uint64_t writer_size(EntryLogWriter* writer) noexcept nogil
