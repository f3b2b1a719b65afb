"""What the client needs of event loops besides asyncio itself.

Leans on `bookie.errors` only. Begin with `thread`, on which the blocking client runs.

thread    an event loop on a daemon thread, for callers that have none
together  several coroutines that belong together
stop      the end of a coroutine, asked for from any thread
"""
