"""Blocking, pipelined connections to single bookies, for threads: the lowest-level public API of the client.

They are built on `bookie.client.wire` and `bookie.client.entries` only. Use `BookKeeper` to read and write ledgers,
and a channel to send requests to one bookie. Begin reading with `operations`, then `connection`. A channel has a
connection, which could be replaced by another implementation, such as a compiled one.

operations  what channels of both protocols can do
v2          a channel that speaks V2: add, read, batch read, fence
v3          a channel that speaks V3: the same, and long polls, explicit LACs, deferred sync and bookie info
connection  the interface between channels and what carries their requests
threaded    the connection of all channels: a socket, a receiving thread, and the pending replies
stream      a stream of adds with a bounded number of unanswered ones
streams     all streams of a connection
batches     consecutive batch reads
reply       the pending response to one request
"""
