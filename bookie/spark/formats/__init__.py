"""The formats that read files of a bookie, or show what a cluster has. docs/spark.md describes their options.

entrylog    `bookkeeper-entrylog`: the records of entry logs, from files
journal     `bookkeeper-journal`: the records of journals, from files
ledgers     `bookkeeper-ledgers`: a row for each ledger
bookies     `bookkeeper-bookies`: a row for each bookie
replicas    `bookkeeper-replicas`: the state of each replica of each entry

files       finds the files to read and packs them into partitions
partitions  files as the partitions of a scan
scanning    the rows of a file as record batches, and the handling of damage
comparing   compares the replicas of a ledger
ids         ledger ids as the partitions of a scan
known       digest and password of a ledger, from its metadata
tasks       runs coroutines of the client in a task
"""
