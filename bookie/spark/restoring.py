"""A task that repairs some ledgers: it copies what lost bookies stored, or rewrites what live bookies lack.

It has a metadata session of its own. Ledgers that a replication worker has locked are tried once more at the end.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bookie.client.replication.contracts import Environment
    from bookie.client.replication.restoring import Restored

__all__ = ["restore_ledgers", "rewrite_ledgers"]


def restore_ledgers(
    ledgers: Iterable[int], *, uri: str, given: Mapping[str, str], lost: frozenset[str], fence: bool
) -> Iterator[dict[str, Any]]:
    """Re-replicate ledgers; yield the fields of a `Restored` for each ledger.

    Args:
        ledgers: the ids of the ledgers.
        uri: the metadata service URI.
        given: settings of the client and of auto-recovery.
        lost: the ids of the lost bookies.
        fence: fence and close ledgers that are open.

    Raises:
        ConfigurationError: the URI or a setting is invalid.
        MetadataStoreError: the metadata store cannot be reached.
    """
    from bookie.client.replication.restoring import restore  # noqa: PLC0415  # --help does not need the client

    yield from _mended(
        list(ledgers), uri, given, lambda environment, some: restore(environment, some, lost, fence=fence)
    )


def rewrite_ledgers(
    rows: Iterable[Any], *, uri: str, given: Mapping[str, str], replace: bool
) -> Iterator[dict[str, Any]]:
    """Rewrite entries on bookies that lack them; yield the fields of a `Restored` for each ledger.

    Args:
        rows: pairs of a ledger and its runs; a run has bookie, first entry, last entry and finding.
        uri: the metadata service URI.
        given: settings of the client and of auto-recovery.
        replace: replace the bookies at once, instead of writing to them again.

    Raises:
        ConfigurationError: the URI or a setting is invalid.
        MetadataStoreError: the metadata store cannot be reached.
    """
    from bookie.client.replication.restoring import rewrite  # noqa: PLC0415  # --help does not need the client
    from bookie.client.replication.rewriting import Run  # noqa: PLC0415

    found: dict[int, dict[str, list[Run]]] = {}
    for ledger, runs in rows:
        for bookie, first, last, finding in runs:
            found.setdefault(ledger, {}).setdefault(bookie, []).append(Run(first, last, finding == "LENGTH"))

    def work(environment: "Environment", some: list[int]) -> "AsyncIterator[Restored]":
        return rewrite(environment, {ledger: found[ledger] for ledger in some}, replace=replace)

    yield from _mended(list(found), uri, given, work)


def _mended(
    wanted: list[int],
    uri: str,
    given: Mapping[str, str],
    work: "Callable[[Environment, list[int]], AsyncIterator[Restored]]",
) -> list[dict[str, Any]]:
    return asyncio.run(_all(wanted, uri, given, work)) if wanted else []


async def _all(
    wanted: list[int],
    uri: str,
    given: Mapping[str, str],
    work: "Callable[[Environment, list[int]], AsyncIterator[Restored]]",
) -> list[dict[str, Any]]:
    from bookie.client.replication.service import opened  # noqa: PLC0415
    from bookie.metadata import open_driver  # noqa: PLC0415

    async def rows(of: "AsyncIterator[Restored]") -> "dict[int, Restored]":
        async with aclosing(of) as each:  # type: ignore[type-var]
            return {row.ledger: row async for row in each}

    async with opened("bkpipe", open_driver(uri, create=False), given) as environment:
        found = await rows(work(environment, wanted))
        locked = [ledger for ledger in wanted if found[ledger].state == "locked"]
        found |= await rows(work(environment, locked))
    return [{**asdict(row), "taken_by": list(row.taken_by)} for row in found.values()]
