"""`bkadmin cookie_get`."""

import click

from admin.bkadmin.options import Cluster, with_cluster
from bookie.errors import IllegalOperation


@click.command()
@click.argument("bookie")
@with_cluster
def command(*, bookie: str, cluster: Cluster) -> None:
    """Print the cookie of BOOKIE (its id) as the metadata store has it: the text of its VERSION files."""
    with cluster.open() as driver:
        found = driver.cookies.read(bookie)
    if found is None:
        raise IllegalOperation(
            f"bookie {bookie} has no cookie in the metadata store; bkadmin listbookies shows who has"
        )
    click.echo(found[0].decode("utf-8", "replace").rstrip("\n"))
