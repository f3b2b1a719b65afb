"""Format `bookkeeper`, writing: a DataFrame or a stream becomes ledgers, and a log that names them in order.

Each attempt of a task writes ledgers of its own (BookKeeper's single writer is a task attempt); nobody sees them until
the driver puts those of the attempts that won into the log, in one compare-and-set that also says which batch it was.

settings   the options, as a value that goes to the tasks
labels     what the custom metadata of a ledger says about who wrote it
task       the ledgers of one task attempt
results    what a task tells the driver
commit     the driver's part: append, replace, recognise what was committed before, give up
orphans    ledgers that nobody will commit, found and deleted
manifest   the ledgers of a commit as a file, for who wants no log
writers    what Spark calls
"""
