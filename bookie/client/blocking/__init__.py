"""The ledger client for threads: every class waits for its twin of `bookie.client.aio`.

Leans on `bookie.client.aio` and on the event loop of `bookie.client.event_loop.thread`; nothing else of the client
knows it. Its public names are those of `bookie.client`. Begin with `bookkeeper`.

bookkeeper    ledgers made, opened, deleted, listed
handles       a ledger that is read or written
logs          named lists of ledgers
bookie_calls  requests to single bookies
bookie_infos  how much room bookies have
"""
