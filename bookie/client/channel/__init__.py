"""Blocking, pipelined connections to one bookie each, for threads: the lowest public API of the client.

Leans on `bookie.client.wire` and `bookie.client.entries` only; who reads and writes ledgers does not need it, who asks
a single bookie does. Begin with `operations`, what every channel can do, then `connection`.

operations  what channels of both protocols can do
v2          a channel in V2: add, read, batch read, fence
v3          a channel in V3: the same, long polls, explicit LACs, deferred sync, facts about the bookie
connection  what both are made of: socket, receiving thread, replies
stream      a bounded stream of adds
batches     batch reads that follow each other
reply       the pending answer to one request
"""
