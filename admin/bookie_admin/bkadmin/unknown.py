"""A warning for a bookie id that nothing in the cluster refers to. It is probably mistyped, and without the warning
"nothing to do" would look like success.
"""

from collections.abc import Iterable

import click

from bookie_admin.bkadmin.options import Cluster

__all__ = ["warn_of_unknown"]


def warn_of_unknown(cluster: Cluster, bookies: Iterable[str]) -> None:
    """Print a warning for each of `bookies`, which no ledger names, that has no cookie either.

    Raises:
        MetadataStoreError: the metadata store cannot be read.
    """
    with cluster.open() as driver:
        strangers = sorted(set(bookies) - driver.bookies.known())
    for one in strangers:
        text = f"bookie {one} is in no ledger and has no cookie; check the id: bkadmin listbookies lists all"
        click.echo(f"bkadmin: {text}", err=True)
