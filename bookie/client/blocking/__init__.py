"""The ledger client for threads. Every class waits for the class of the same purpose in `bookie.client.aio`.

It is built on `bookie.client.aio` and on the event loop of `bookie.client.event_loop.thread`; no other package of the
client depends on it. Its public names are exported by `bookie.client`. Begin reading with `bookkeeper`.

bookkeeper      BookKeeper: create, open, delete and list ledgers
handles         the handle for reading a ledger
direct_reads    reads of one replica by the calling thread, without the event loop
direct_batches  the same for a range of entries, several requests ahead
batches         an iterator over consecutive batches
direct_adds     adds of lone entries by the calling thread
writers         the handles for writing a ledger
appends         adds that are pending, as futures
logs            named lists of ledgers
bookie_calls    requests to single bookies
bookie_infos    the free space of the bookies
"""
