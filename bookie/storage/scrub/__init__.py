"""The scrub: reads all entry logs over and over at a low rate, so that damage is found early.

    settings     what an operator can configure
    findings     the kinds of damage, and where each was found
    cursor       how far a pass got, kept over restarts
    digests      the digest type and key of each ledger
    logs         one entry log: structure, ids, digests, ledgers map, and the index in both directions
    counters     the counters
    scrubbing    the thread, its status, and the commands of an operator

The compiled modules `entrylog.rows` and `scrub` read the bytes. Listeners are told of every finding; repairing it is
their task, not this package's.
"""
