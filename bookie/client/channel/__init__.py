"""Blocking, pipelined connections to single bookies, for threads: the lowest-level public API of the client.

They are built on `bookie.client.wire` and `bookie.client.entries` only. Use `BookKeeper` to read and write ledgers,
and a channel to send requests to one bookie. Begin reading with `operations`, then `connection`.

operations  what channels of both protocols can do
v2          a channel that speaks V2: add, read, batch read, fence
v3          a channel that speaks V3: the same, and long polls, explicit LACs, deferred sync and bookie info
connection  the base of both: the socket, the receiving thread and the pending replies
stream      a stream of adds with a bounded number of unanswered ones
batches     consecutive batch reads
reply       the pending response to one request
"""
