"""The data port: connections, the I/O loops that serve them, and the path of each request from socket to response.

`io_loop` waits for sockets and gives each connection its turn. `intake` receives and cuts frames, `dispatch` carries
out a request against the stores, `answers` writes responses, and `awaited` sends those that had to wait for a journal,
the read pool, Python or a higher LAC. `connection` is the memory of one client, `limits` what all of them must keep to,
`gate` what they may ask before they have authenticated, and `policy` the queue to the requests that Python answers.

Begin with `connection` and `io_loop`, then follow a request through `intake` and `dispatch`.

Leans on: base, wire, journal, cache, store.
"""
