"""A task that copies what lost bookies held of some ledgers. It has a session with the metadata store of its own."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

__all__ = ["restore_ledgers"]


def restore_ledgers(
    ledgers: Iterable[int], *, uri: str, given: Mapping[str, str], lost: frozenset[str], fence: bool
) -> Iterator[dict[str, Any]]:
    """A row a ledger, as `Restored`. What a replicator works on is asked for once more when the others are done.

    `given`: settings of client and auto-recovery. ConfigurationError, MetadataStoreError.
    """
    wanted = list(ledgers)
    if wanted:
        yield from asyncio.run(_all(wanted, uri, given, lost, fence=fence))


async def _all(
    wanted: list[int], uri: str, given: Mapping[str, str], lost: frozenset[str], *, fence: bool
) -> list[dict[str, Any]]:
    from bookie.client.replication.restoring import Restored, restore  # noqa: PLC0415  # help loads no client
    from bookie.client.replication.service import opened  # noqa: PLC0415
    from bookie.metadata.driver import open_driver  # noqa: PLC0415

    async def rows(of: AsyncIterator[Restored]) -> dict[int, Restored]:
        async with aclosing(of) as each:  # type: ignore[type-var]
            return {row.ledger: row async for row in each}

    async with opened("bkpipe", open_driver(uri), given) as world:
        found = await rows(restore(world, wanted, lost, fence=fence))
        held = [ledger for ledger in wanted if found[ledger].state == "held"]
        found |= await rows(restore(world, held, lost, fence=fence))
    return [{**asdict(row), "taken_by": list(row.taken_by)} for row in found.values()]
