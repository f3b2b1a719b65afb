"""The scrub: entry logs read again and again at a pace that nobody notices, so that damage is found early.

    settings     what an operator can set
    findings     what can be wrong with a record, and where
    cursor       how far a pass got, kept over restarts
    digests      what protects the entries of each ledger
    logs         one entry log: structure, ids, digests, its map, and the index, both ways
    counters     what is counted
    scrubbing    the thread, what an operator sees and may order

Bytes move in the compiled modules `entrylog.rows` and `scrub`. What is found is told to who repairs it, which is none
of this package's business.
"""
