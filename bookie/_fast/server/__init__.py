"""The data port: connections, the I/O loops that serve them, and the path of each request from socket to response.

`io_loop` waits for sockets and gives each connection its turn. `intake` receives and cuts frames, `dispatch` carries
out requests against the stores, `replies` writes responses, and `awaited` those of requests that had to wait for a
journal, the read pool, Python or a higher LAC; `output` sends them at the end of a round. `connection` is the memory of
one client. `accepting` creates it, `membership` and `expiry` close it, and `interest` registers its epoll events.
`limits` holds the limits of all clients, `gate` decides which requests may precede authentication, and `policy` is the
queue of requests that Python answers.

Begin with `connection` and `io_loop`, then follow a request through `intake` and `dispatch`.

Leans on: base, wire, journal, cache, store.
"""
