"""Connections to bookies on asyncio, and the metadata store without blocking: what the client's ledgers run on.

Leans on `bookie.client.wire` and fulfils `bookie.client.contracts`. Begin with `client`, then `link`.

client      all bookies, by id
peer        one bookie: where it is, what it offers, its connections
connect     how a connection is made, encrypted and authenticated
link        one connection
reads       its single reads that were asked many at a time
lane        the adds of one ledger on it
health      who is quarantined
quarantine  placement without them
addresses   where bookies are
stores      the metadata store
"""

from bookie.client.bookies.client import BookieClient
from bookie.client.bookies.stores import MetadataStore

__all__ = ["BookieClient", "MetadataStore"]
