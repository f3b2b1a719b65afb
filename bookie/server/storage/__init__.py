"""Ledger storage as the server wires it: what the packages of `bookie.storage` are given, and what planes are shown.

`collecting` makes garbage collection from directories, metadata store, cookie and disks, and `own_ledgers` tells it
what the metadata store says of the ledgers here. `scrubbing` makes the scrub in the same way. `stored` lists the entry
logs, ledgers and entries of this bookie for planes.

Begin with `collecting`.

Leans on: server.disks, server.configuration, bookie.storage, bookie.metadata.
"""
