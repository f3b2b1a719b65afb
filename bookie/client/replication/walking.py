"""Visit every ledger of the cluster, a bounded number at a time. Event loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection

from bookie.client.contracts import Metadata
from bookie.errors import NoSuchLedgerMetadata
from bookie.metadata.records.ledger_metadata import LedgerMetadata

__all__ = ["each_ledger"]


async def each_ledger(
    store: Metadata,
    visit: Callable[[int, LedgerMetadata], Awaitable[None]],
    *,
    at_once: int,
    among: Collection[int] | None = None,
) -> None:
    """Read the metadata of each ledger, or of those in `among`, and visit it. The first error ends it.

    At most `at_once` ledgers are visited at the same time. Ledgers that are deleted meanwhile are skipped.
    """
    under_way: set[asyncio.Task[None]] = set()

    async def one(ledger: int) -> None:
        try:
            stored = await store.read(ledger)
        except NoSuchLedgerMetadata:
            return
        await visit(ledger, stored.value)

    async def settle(left: int) -> None:
        while len(under_way) > left:
            done, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            under_way.difference_update(done)
            for task in done:
                task.result()

    try:
        async for page in store.ledgers() if among is None else _one_page(among):
            for ledger in page:
                await settle(at_once - 1)
                under_way.add(asyncio.ensure_future(one(ledger)))
        await settle(0)
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


async def _one_page(ledgers: Collection[int]) -> AsyncIterator[Collection[int]]:
    yield ledgers
