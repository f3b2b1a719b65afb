"""Ledgers that a command makes for itself, and takes away again however it ends."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import click

from bookie.errors import BookKeeperError

if TYPE_CHECKING:
    from bookie.client.aio import BookKeeper

__all__ = ["scratch"]


@asynccontextmanager
async def scratch(bk: "BookKeeper", *, keep: bool) -> AsyncIterator[list[int]]:
    """The ids of ledgers that were made, to be added to. At the end they are deleted, unless `keep`.

    What stopped the work is told, not what then stands in the way of deleting; what is left behind is named.
    """
    made: list[int] = []
    try:
        yield made
    except BookKeeperError:
        try:
            await _delete(bk, made, keep=keep)
        except BookKeeperError:
            click.echo(f"bkadmin: left behind: ledger {', '.join(map(str, made))}; bkadmin deleteledger", err=True)
        raise
    except BaseException:
        await _delete(bk, made, keep=keep)
        raise
    await _delete(bk, made, keep=keep)


async def _delete(bk: "BookKeeper", made: list[int], *, keep: bool) -> None:
    while made and not keep:
        await bk.delete_ledger(made[-1])
        made.pop()
