"""A bookie that nothing names may be a slip of the pen: that is said, for "nothing to do" looks like success."""

from collections.abc import Iterable

import click

from admin.bkadmin.options import Cluster

__all__ = ["warn_of_unknown"]


def warn_of_unknown(cluster: Cluster, bookies: Iterable[str]) -> None:
    """A line for each of these, which no ledger names, that has no cookie either. MetadataStoreError."""
    with cluster.open() as driver:
        strangers = sorted(set(bookies) - driver.bookies.known())
    for one in strangers:
        text = f"no ledger names bookie {one}, and it has no cookie: is that its id? bkadmin listbookies shows all"
        click.echo(f"bkadmin: {text}", err=True)
