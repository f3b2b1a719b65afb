"""Ledger storage as the server assembles it: the dependencies of packages of `bookie.storage`, and reports for
planes.

`collecting` makes the garbage collection from directories, metadata store, cookie and disks, and `own_ledgers` tells
it what the metadata store says about the ledgers here. `scrubbing` makes the scrub in the same way. `stored` lists
the entry logs, ledgers and entries of this bookie for planes.

Begin with `collecting`.

Leans on: server.disks, server.configuration, bookie.storage, bookie.metadata.
"""
