"""A bookie's data compared with the cluster's metadata, and what it lacks copied from the other replicas.

expected     which entries of a ledger a bookie has to hold
distrust     before a start on a lost disk: ledgers whose answers cannot be trusted go into limbo
peers        channels to the other bookies
copying      the missing entries of one ledger, from the others into ours
integrity    every ledger of the bookie in turn
mending      the bad entries of one ledger, repaired in the serving bookie
service      what the scrub and failed reads find, mended one ledger after the other

Above server and client, because it needs the storage's tools as well as channels. Caller's threads.
"""
