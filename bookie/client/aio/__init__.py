"""The ledger client for asyncio. It has the methods of the client for threads; those that wait are coroutines.

    async with BookKeeper("zk+hierarchical://127.0.0.1:2181/ledgers") as bk:
        async with bk.create_ledger(ensemble_size=3, write_quorum_size=3, ack_quorum_size=2, password=b"") as ledger:
            await ledger.append(b"hello")
        async with bk.open_ledger(ledger.id, password=b"") as ledger:
            async for batch in ledger.batches():
                for entry in batch:
                    print(entry.id, bytes(entry.data))

It is built on `bookie.client.ledgers`, and on `bookie.client.known_cluster`, which brings the bookies and the placement
policy. Begin reading with `client`.

client    BookKeeper: create, open, delete and list ledgers
reading   the handle for reading a ledger
writing   the handle for writing a ledger
logs      named lists of ledgers
listing   lists that the metadata store returns in pages
metrics   the client's metrics
scope     the calls that a client has outstanding, which end when it is closed
"""

from bookie.client.aio.client import BookKeeper
from bookie.client.aio.reading import ReadHandle
from bookie.client.aio.writing import AdvancedWriteHandle, WriteHandle

__all__ = ["AdvancedWriteHandle", "BookKeeper", "ReadHandle", "WriteHandle"]
