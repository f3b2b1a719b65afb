"""Writing with format `bookkeeper`: a DataFrame or a stream becomes ledgers, and a log that lists them in order.

Each task attempt writes ledgers of its own, because a ledger has a single writer. Readers do not see them until the
driver commits: one compare-and-set adds the ledgers of the successful attempts to the log and records which batch they
are.

    writers    the classes that Spark calls; begin here
    settings   the options, as a value that is pickled into the tasks
    labels     the custom metadata of a ledger that says who wrote it
    task       the ledgers of one task attempt
    results    what a task reports to the driver
    commit     the driver's side: append, replace, recognise an earlier commit, abort
    orphans    finds and deletes ledgers that will not be committed
    manifest   the ledgers of a commit as a file, for use without a log
"""
