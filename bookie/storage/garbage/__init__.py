"""Garbage collection as policy: which ledgers are deleted, which entry logs are compacted, when, and how fast.

    settings     what an operator can configure
    contracts    what a collection needs from the metadata store and from a ledger directory
    directory    a ledger directory, on top of the compiled module
    decision     which ledgers are deleted: pure functions over sorted ids
    choice       which logs are compacted, and in which order: pure functions too
    everywhere   work in all directories at the same time
    empty_list   when an empty list of ledgers is believed
    ledgers      the first half of a cycle: deleting ledgers
    logs         the second half: unlinking dead logs, compacting others
    schedule     when cycles and compactions are due, kept over restarts
    collection   the thread, its status, and the commands of an operator
    steps        the steps of a cycle by name, for tests that end the process after one of them
    counters     the counters

The compiled module `store.gc.collector` moves the bytes.
"""
