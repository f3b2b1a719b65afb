"""Garbage collection as policy: which ledgers go, which logs are compacted, when, and how fast.

    settings     what an operator can set
    contracts    what a collection needs of the metadata store and of a ledger directory
    directory    one such directory, on the compiled module
    decision     which ledgers go: pure functions over sorted ids
    choice       which logs are compacted, and in which order: pure too
    ledgers      the first half of a cycle: they go
    logs         the second half: dead logs go, others are compacted
    schedule     when cycles and compactions are due, kept over restarts
    collection   the thread, what an operator sees and may order
    steps        a cycle's steps by name, for tests that end the process behind them
    counters     what is counted

Bytes move in the compiled module `store.gc.collector`.
"""
