"""The wire protocols: requests and responses of V2 and V3, and how a connection is encrypted and authenticated.

Both the channels (`bookie.client.channel`) and the links of the ledger client (`bookie.client.bookies`) are built on
it. It is built on the compiled framing (`bookie._fast.client`), on `bookie.client.entries`, on `bookie.auth` and on
the messages of `bookie.pb`. It neither waits nor starts threads, except while a connection is being secured. Begin
reading with `request`, then `v2` or `v3`.

request        a request in flight, and the interface of a protocol
v2, v3         the two protocols
requests_v3, answers_v3, messages    V3 messages that are not bulk data
unanswered     the requests without a response; in V2, those that a new request must wait for
flags          request flags
extensions     operations that only some bookies support
receive        the memory that responses are received in
security, tls  how a connection is encrypted and authenticated
bookie_space   the free space of a bookie, read over a connection of its own
unreachable    the error for a bookie to which no connection can be made
"""
