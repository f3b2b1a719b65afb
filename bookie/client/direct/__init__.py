"""Direct connections: the calling thread itself sends a request to a bookie and receives the response.

The event loop of the client is built for many requests at a time. A thread that waits for one response pays for two
switches of threads and for asyncio, which is several times what the socket takes. A direct connection serves exactly
that: a request to one bookie that is answered well and in time. Whatever else happens is left to the event loop, which
repeats the request: a direct connection never retries, never asks a second replica and never raises an error of a
bookie. It is built on the compiled connection (`bookie._fast.client.direct_link`) and on `bookie.client.wire`. Begin
reading with `pool`.

pool     the direct connections to one bookie, and when they are not used
limits   how long the steps of a direct call may take
connect  how one is established: TCP, then encryption, then authentication
encrypt  the encryption, and how it trusts what the event loop trusts
"""
