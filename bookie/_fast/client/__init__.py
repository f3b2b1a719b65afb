"""The client's side of the wire protocol, without sockets: frames of many requests, responses matched to requests.

`framing_v2` and `framing_v3` write batches of requests and cut the bytes received into rows, one for each response. The
other modules keep track of what has no response yet: `write_window` the adds of a ledger until a quorum has
acknowledged them, `add_waiters` who waits for that, `adds_in_flight` the requests of one connection. `reads_in_flight`
and `stream_adds` extend this table to pass responses on to groups of reads and to streams of adds. On a `direct_link`
the calling thread sends and receives itself; `direct_adds` adds entries over several of them. A `payload_block` takes
the entries of many batches.

Begin with `framing_v2`, then `write_window`.

Leans on: base, wire.
"""
