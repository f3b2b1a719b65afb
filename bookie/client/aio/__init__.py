"""The client on asyncio: every method of `bookie.client`'s that waits is a coroutine here.

    async with BookKeeper("zk+hierarchical://127.0.0.1:2181/ledgers") as bk:
        async with bk.create_ledger(ensemble_size=3, write_quorum_size=3, ack_quorum_size=2, password=b"") as ledger:
            await ledger.append(b"hello")
        async with bk.open_ledger(ledger.id, password=b"") as ledger:
            async for batch in ledger.batches():
                for entry in batch:
                    print(entry.id, bytes(entry.data))

Leans on `bookie.client.ledgers`, and on `bookie.client.known_cluster`, which brings bookies and placement along. Begin
with `client`.

client    BookKeeper: ledgers made, opened, deleted, listed
reading   the handle of a ledger that is read
writing   the handle of a ledger that is written
logs      named lists of ledgers
metrics   what a client measures
scope     what a client has under way, and how all of it ends with the client
"""

from bookie.client.aio.client import BookKeeper
from bookie.client.aio.reading import ReadHandle
from bookie.client.aio.writing import AdvancedWriteHandle, WriteHandle

__all__ = ["AdvancedWriteHandle", "BookKeeper", "ReadHandle", "WriteHandle"]
