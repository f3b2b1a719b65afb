"""Compiled ground floor: bytes, files, caches and sockets on plain C memory, without the GIL.

Rooms, lowest first. A room may cimport only rooms above it in this list; tests/test_tidy.py reads it.

  ground
    build                   the flavour: release or debug
    planted                 bugs that tests switch on: nothing in a release (BOOKIE_FAULTS=1)
    scheduling              short slices for data threads
    types, cursor, sync     the C vocabulary: ids, Status, big-endian access, locks and atomics
    crash_steps             where crash tests end the process, or hold a thread
    bounds                  what the bookie can hold: the one statement of its limits
    request                 a request as the data path sees it, whichever protocol it came in
    epoll                   epoll(7) as the loops use it
    op_stats                how long things took, or how large they were
    waker                   one wake-up for many completions
    fatal                   the latch that stops every acknowledgement after the first failed write
    by_ledger               a hash by ledger id
    by_age                  the same, in the order of age
    crc                     CRC32C and CRC32
    sync_many               fdatasync of many files at once
    spare_descriptors       descriptors kept for what storage opens
    file                    FileOps, the seam through which every byte reaches a disk
    pace                    bytes a second for background work
    openssl_c               OpenSSL's C functions
    tls                     the server's side of TLS on memory
    _faulty                 FileOps that fail, tear and stall on a plan: built for tests only (BOOKIE_FAULTS=1)
  formats
    digest                  the client's digest of an entry
    record                  walking runs of `u32 length | entry`
    payloads                the payloads of a run: one by one for Python, in one piece for Arrow
    wire_v2                 V2 request and response layouts
    proto_wire              protobuf's varints, tags and fields
    wire_v3                 V3 requests
    wire_v3_answers         V3 answers
    client_wire             the client's side of them: batches of requests, answers cut into rows
    client_wire_v3          the same for V3
    add_window              the unacknowledged end of a stream of adds
    write_window            the adds of a ledger between being sealed and acknowledged by a quorum
    adds_in_flight          the unanswered adds of a connection, by the names that answers give them
    single_reads            single reads in bulk: frames of many requests, the entry in an answer
    read_run                entries read one by one, and a range put together of them
    reads_in_flight         the unanswered single reads of a connection, and the runs they belong to
  files
    window                  a sliding window over a file, for scans
    log_scan                the entry log format, and its scan
    digest_check            digests of the records of an entry log
    log_reader              reads at known places of entry logs
    ledger_bytes            bytes per ledger of the log being written
    log_map                 which ledgers an entry log holds
    log_ids                 entry log ids of a directory: handed out, open, closed
    entry_log               append, rotate and sync entry logs
    logs_per_ledger         how many entry logs a ledger took
    log_set                 one entry log for all ledgers, or one for each
    run_key                 where a run stands in the table
    run_codec               packed runs and ledger records
    lmdb_c                  LMDB's C functions
    run_table               the table of runs that never overlap
    run_upgrade             a table of the version before, made one of this
    lmdb_pages              the pages of its file, checked before they are believed
    lmdb_tree               a tree of them, walked behind damage too
    branch_sums             checksums of a tree's branch pages
    run_search              runs found in the pages of a commit
    index_damage            what was found wrong with an index, for the log and for who repairs it
    index_doubts            ledgers that lost runs with a damaged part
    index_guard             what a write transaction is about to lean on, looked at before
    index_snapshot          what a commit made of the index, as its readers share it
    index_state             what an open index is made of
    index_writes            its write transaction
    location_index          where each run of entries lies
    index_tables            its tables of ledgers, fences and doubts
    index_view              the index as Python sees it
    index_salvage           what can be read of a damaged index, in a new one
    located                 records and where they lie, sorted
    index_rebuild           the index made anew from entry logs
    journal_reader          verified scan of journal files
    record_rows             what a scan writes down of records: columns, for Arrow
    row_file                a file whose records become such rows: open, filled, closed
    log_rows                an entry log as such rows, also behind damage
    journal_rows            a journal as such rows
    backlog                 how far checkpoints lag behind the journals
    journal_stats           what a journal counts
    journal_state           what a journal is made of
    journal_files           the files of a journal: prepared, zeroed, rolled, reused
    journal                 group commit
  memory
    pages                   pages of records
    uncached                pages for reads that the read cache cannot take now
    runs                    the directory of runs: which entries of a ledger lie in memory, and where
    runs_view               the runs of a ledger as Python sees them
    rereads                 which entries were read from disk before
    readahead               how much a miss reads, shrinking where that is wasted
    cache_stats             what is counted of the read cache
    ledger_counts           how many ledgers a directory holds, and may
    ledger_table            every ledger's key, fence and LAC
    notices                 which ledgers changed that long polls wait for
    write_cache             runs waiting for the disk
    read_cache              runs read from it
    store_stats             what a ledger directory counts
    failed_reads            reads that came to nothing, on their way to the log
    stores                  what the data path knows of all ledger directories
    last_entry              what the index tells once of a ledger's end
    ledger_writes           adds, fences and LACs: what clients change of a ledger
    storage                 one ledger directory: caches, index and entry log together
    quarantine              ledgers that hold what cannot be stored, indexed or trusted
    entry_ranges            which entries of a ledger are stored, as ranges
    entry_places            where they lie in entry logs
    last_mark               up to where journals need not be replayed
    kept_fences             the fences of deleted ledgers, kept for a while
    ledger_removal          ledgers out of index, caches and table
    changed_ledgers         the records of changed ledgers into the index
    liveness                whether the index points at a record
    compaction              what lives in a log, moved; the log, removed
    index_repair            a damaged index made good while the bookie serves
    collector               garbage collection of a directory, as policy asks for it
    scrub                   records of entry logs against the index, both ways
    carry_over              what a directory that cannot be flushed has in memory, journaled again
    spare_half              a flushed half of the write cache, until readers let go of it
    checkpoint              swap, append, sync, index, mark
    pack_cache              a write cache whose disk is full, in as few pages as it takes
    replay                  a journal file back into the stores
  service
    loads                   single flight of disk reads
    lane                    the cold reads of a connection that wait: state
    gather                  assembling answers from memory
    read_path               faulting-in of cold runs
    read_pool               the queue of cold reads and the threads that serve it
    long_polls              reads that wait for a higher LAC
    direct                  the stores without a socket, for tests and tools
    users                   who was let in, and what each may ask
    policy                  requests that Python answers: the queue there and back
    addresses               connections by peer address
    limits                  what every connection keeps to
    complaints              what peers did wrong, on its way to the log
    out_item                a piece of a connection's output
    turn                    whose requests a loop serves next: state
    connection              a connection's output and held input
    batch_stats             batch reads by time and size
    access_log              a sample of adds and reads, written down by a thread of its own
    loop_stats              what an I/O loop counts
    loop_ops                how long requests took on an I/O loop
    directory_ops           the same by ledger directory, and how large entries are
    ack_queue               answers that wait for a journal: state
    loop_state              what an I/O loop owns
    clear_auth              AUTH in clear behind START_TLS
    gate                    what a connection may ask before it is authenticated; its frames to Python and back
    admission               how much may be under way at a time
    acks                    answers that wait for a journal
    answers                 every answer of the data path, in its request's protocol
    net_limits              limits and counters that all I/O loops share
    membership              accepting, handing over, arming and closing connections
    slow_readers            what slow readers may keep of the caches
    turns                   a bounded turn for each connection that has requests
    upgrade                 START_TLS: from a clear loop to an encrypted one
    dispatch                the switch on operation
    intake                  receiving, cutting frames, holding back
    awaited                 answers that had to wait for a journal, the read pool, Python or a LAC
    io_loop                 wait, give turns, write
"""
