"""The ledger protocol: ledgers that are striped and replicated over ensembles of bookies. Everything runs on one
event loop.

It is built on `bookie.client.contracts`, never on sockets or a metadata store directly. Begin reading with `writer`
and `reader`.

writer         the core of a write handle: adds go to an ensemble and are acknowledged in order
adds           the part of the writer that accepts entries, on the event loop or from a thread
direct_writes  the part that lets threads add lone entries over connections of their own
appends        adds that were accepted, as futures of asyncio
line           adds that wait until they are accepted
replacement    replace bookies that fail while a ledger is written
suspects       bookies that a writer had better not choose for a while
segments       how the metadata change with an ensemble
senders          one index of a writer's ensemble
throttle       wait for room in the window, and for the rate limit
explicit_lac   send the LAC to bookies when no adds carry it
metadata_loop  change a ledger's metadata by compare-and-set
context        what all ledgers of a client share
creating       create a ledger
opening        open a ledger: check password and digest type
recovery       determine where a ledger ends, and close it
read_ahead     how many entries a recovery reads at the same time
fencing        fence a ledger on its bookies
members        which bookies are registered
reader         the core of a read handle
view           what a handle knows about its ledger: metadata, LAC and length
replicas       in which order the replicas of an entry are asked
race           ask one replica after the other until one gives a good answer
singles        single reads
batch_reads    batch reads
batched        consecutive batches
ranges         all entries of a range, read ahead
range_sizes    how large the requests for a range are, and how many are outstanding
follow         read a ledger while it is written
lac_reads      read the LAC from the bookies
coverage       ask all bookies of an ensemble at once, until enough have answered
"""
