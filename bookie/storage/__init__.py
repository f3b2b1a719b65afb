"""The ledger storage of one bookie: policy over the compiled modules of `bookie._fast.store`. Begin reading with
`ledger_storage`.

ledger_storage   the facade that the server uses: opening, replaying, running and stopping in the right order
settings         frozen settings, with units in their names
layout           the names of files, and what can be learnt from names alone
cookies          the identity of a bookie, in its directories and in the metadata store
marks            up to where in each journal a ledger directory is flushed
recovery         which journal files a start reads, and which damage stops it
replays          the replay of all journals into all directories, also while the bookie serves
essential_threads  threads without which a bookie cannot go on
flush_threads    the threads that flush the ledger directories
backlog          limits on the journal files that wait for a directory's flush
group_ends       checks of the fields that close each group of a journal
bad_files        a quick check for damaged files at start
reserved_blocks  releasing disk blocks that a killed process had reserved
index_mending    replacing a damaged location index at start
index_repair     the thread that repairs a damaged index while the bookie serves
disk_level       how full a directory's disk is, as the server has assessed it
descriptors      postponing background work when connections have used up the file descriptors
rows             a bookie's files as rows, for programs beside a bookie

garbage          which ledgers are deleted and which entry logs are compacted
scrub            reading entry logs again, and comparing them with digests and the index
takeover         starting on the disks of a Java bookie, and the way back
tools            what the offline commands of operators use
"""
