"""Write a ledger on a cluster of at least three bookies, batch-read it, and follow a ledger while it is being written.

python docs/examples/ledgers.py zk+hierarchical://127.0.0.1:2181/ledgers
python docs/examples/ledgers.py grpc://127.0.0.1:3182
"""

import asyncio
import sys
from concurrent.futures import Future

from bookie.client import BookKeeper, EntryBatch, aio


def by_threads(uri: str, records: list[bytes]) -> None:
    """Use the client for threads: blocking calls and futures."""
    with BookKeeper(uri) as bk:
        with bk.create_ledger(
            ensemble_size=3, write_quorum_size=3, ack_quorum_size=2, digest_type="CRC32C", password=b""
        ) as ledger:
            for record in records:
                ledger.append(record)
        with bk.open_ledger(ledger.id, password=b"") as reader:
            at = 0
            while at <= reader.last_add_confirmed:
                batch = reader.batch_read(at, max_count=500, max_size=1 << 20)  # as many as one bookie has
                for entry in batch:
                    print(entry.id, bytes(entry.data))  # data is a memoryview into the batch
                at += len(batch)
            later: Future[EntryBatch] = reader.batch_read_async(1, max_count=1)
            print("a future:", bytes(later.result()[0].data))
        bk.delete_ledger(ledger.id)


async def on_asyncio(uri: str, records: list[bytes]) -> None:
    """Use the client for asyncio: one task writes, another one follows until the ledger is closed."""
    async with aio.BookKeeper(uri) as bk, bk.create_ledger(write_quorum_size=3, digest_type="CRC32C") as ledger:

        async def follow() -> int:
            async with bk.open_ledger(ledger.id, recovery=False) as reader:
                return sum([len(batch) async for batch in reader.follow()])

        following = asyncio.create_task(follow())
        for record in records:
            ledger.append_async(record)  # a future of the entry id
            await ledger.drain()  # waits for room, not for the acknowledgement
        await ledger.flush()
        await ledger.close()
        print("followed:", await following)


if __name__ == "__main__":
    by_threads(sys.argv[1], [b"one", b"two", b"three"])
    asyncio.run(on_asyncio(sys.argv[1], [b"%d" % number for number in range(10_000)]))
