"""What is said to one bookie and how: requests and answers of both protocols, and how a connection is made safe.

Both the channels (`bookie.client.channel`) and the links of the ledger client (`bookie.client.bookies`) are made of it.
It leans on the compiled framing (`bookie._fast.client`), on `bookie.client.entries`, `bookie.auth` and the messages of
`bookie.pb`, and neither waits nor starts threads, except while a connection is secured. Begin with `request`, what is
sent and how its answer is told from others, then `v2` or `v3`.

request        a request on its way, and what a protocol is
v2, v3         the two protocols
requests_v3, answers_v3, messages    V3 messages that are not bulk
flags          what a request may ask for besides its operation
extensions     operations that only some bookies offer
receive        the memory that answers arrive in
security, tls  how a connection is encrypted and authenticated
bookie_space   how much room a bookie has, asked on a connection of its own
"""
