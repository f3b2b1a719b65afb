"""Formats that look at files of a bookie, and at what a cluster holds.

entrylog   `bookkeeper-entrylog`: records of entry logs, offline
journal    `bookkeeper-journal`: records of journals, offline
ledgers    `bookkeeper-ledgers`: one row a ledger
bookies    `bookkeeper-bookies`: one row a bookie
replicas   `bookkeeper-replicas`: what each bookie has of each entry that it should hold

files      which files are read, in which partitions
partitions whole files as partitions
scanning   rows of a file as record batches, and what becomes of damage
comparing  a ledger's replicas beside each other
"""
