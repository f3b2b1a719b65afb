"""Comparison of a bookie's data with the cluster's metadata, and repair from the other replicas.

expected     which entries of a ledger a bookie must hold
distrust     puts ledgers whose answers cannot be trusted into limbo before a start on a lost disk
peers        channels to the other bookies
copying      copies the missing entries of one ledger from the other replicas
integrity    checks every ledger of the bookie in turn
mending      repairs the damaged entries of one ledger while the bookie serves
service      repairs what the scrub and failed reads find, one ledger after the other

This package is above server and client, because it needs the storage's tools as well as channels. It runs on the
caller's threads.
"""
