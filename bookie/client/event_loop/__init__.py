"""Tools for event loops that asyncio does not have.

They are built on `bookie.errors` only. Begin reading with `thread`, on which the client for threads runs.

thread    an event loop on a daemon thread
together  run several coroutines until all are done or one fails
limited   calls that may take a limited time
pages     the pages of a list, for callers that may be cancelled
stop      cancel a coroutine from any thread
"""
