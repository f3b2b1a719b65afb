"""The data port: connections, the I/O loops that serve them, and the path of each request from socket to response.

`io_loop` waits for sockets and gives each connection its turn. `intake` receives and cuts frames, `dispatch` carries
out a request against the stores, `replies` writes responses, and `awaited` sends those that had to wait for a journal,
the read pool, Python or a higher LAC; `output` hands them to the kernel at the end of a round. `connection` is the
memory of one client; `accepting`, `membership` and `expiry` begin and end it, `interest` asks epoll for its events.
`limits` is what all clients must keep to, `gate` what they may ask before they have authenticated, and `policy` the
queue to the requests that Python answers.

Begin with `connection` and `io_loop`, then follow a request through `intake` and `dispatch`.

Leans on: base, wire, journal, cache, store.
"""
