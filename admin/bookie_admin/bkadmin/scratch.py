"""Temporary ledgers that a command creates and deletes again, however it ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from bookie.errors import BookKeeperError

if TYPE_CHECKING:
    from bookie.client import BookKeeper

__all__ = ["scratch"]


@contextmanager
def scratch(bk: "BookKeeper", *, keep: bool) -> Iterator[list[int]]:
    """Yield a list to which the caller appends the ids of the ledgers it creates; delete them at the end, unless
    `keep`.

    If the work fails with a BookKeeperError and deleting fails too, the first error is raised, and the ledgers that
    are left behind are named on standard error.
    """
    made: list[int] = []
    try:
        yield made
    except BookKeeperError:
        try:
            _delete(bk, made, keep=keep)
        except BookKeeperError:
            click.echo(f"bkadmin: not deleted: ledger {', '.join(map(str, made))}; use bkadmin deleteledger", err=True)
        raise
    except BaseException:
        _delete(bk, made, keep=keep)
        raise
    _delete(bk, made, keep=keep)


def _delete(bk: "BookKeeper", made: list[int], *, keep: bool) -> None:
    while made and not keep:
        bk.delete_ledger(made[-1])
        made.pop()
