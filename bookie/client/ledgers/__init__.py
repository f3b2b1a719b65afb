"""Ledgers over ensembles: the client's protocol, on one event loop.

Leans on `bookie.client.contracts`, never on sockets or a metadata store themselves. Begin with `writer` and `reader`.

writer         the write handle's core: adds to an ensemble, acknowledged in order
adds           the part of it that takes entries, one or many, on the loop or from a thread
replacement    bookies that fail while a ledger is written, replaced
segments       how an ensemble changes
lanes          one place of the ensemble
throttle       waiting for room, and for the rate
explicit_lac   telling bookies the LAC while no adds carry it
metadata_loop  change a ledger's metadata by compare-and-set, whoever else changes it too
context        what all ledgers of a client share
creating       a new ledger
opening        an old one, by password and digest
recovery       settling where a ledger ends
fencing        keeping its writer from going on
members        which bookies there are
reader         the read handle's core
view           what a handle knows of its ledger, and who waits for that to change
replicas       in which order those of an entry are asked
race           one question put to one after the other until one gives a good answer
singles        entries read one by one
batch_reads    many entries in one answer
batched        batches that follow each other
ranges         all of a range, read ahead
follow         a ledger that is still written
lac_reads      how far it is acknowledged
coverage       all of an ensemble asked at once, and when enough have answered
"""
