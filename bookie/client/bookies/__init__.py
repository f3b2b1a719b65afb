"""Connections to bookies on asyncio, and the metadata store without blocking: what the ledger protocol runs on.

It is built on `bookie.client.wire`, and implements the interfaces of `bookie.client.contracts`. Begin reading with
`client`, then `link`.

client      all bookies, by id
peer        one bookie: its address, what it supports, its connections
connect     how a connection is made, encrypted and authenticated
link        one connection
awaited     the pending response to one request
reads       groups of single reads on a connection
sender        the adds of one ledger on a connection
announcing  announcements of closed ledgers, which closing a client waits for
batch_stats the counts of batch reads, for metrics
health      which bookies are quarantined
quarantine  placement without the quarantined bookies
addresses   the addresses of bookies
stores      the metadata store
"""

from bookie.client.bookies.client import BookieClient
from bookie.client.bookies.stores import MetadataStore

__all__ = ["BookieClient", "MetadataStore"]
