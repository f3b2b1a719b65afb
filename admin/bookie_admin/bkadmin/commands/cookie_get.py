"""`bkadmin cookie_get`: show the cookie of a bookie in the metadata store."""

import click

from bookie.errors import IllegalOperation
from bookie.terminal.output import done
from bookie_admin.bkadmin.options import Cluster, bookie_ids, with_cluster, with_output


@click.command()
@click.argument("bookie", shell_complete=bookie_ids)
@with_cluster
@with_output
def command(*, bookie: str, cluster: Cluster, output: str) -> None:
    """Show the cookie of BOOKIE (its id) in the metadata store, in the text format of its VERSION files."""
    with cluster.open() as driver:
        found = driver.cookies.read(bookie)
    if found is None:
        raise IllegalOperation(
            f"bookie {bookie} has no cookie in the metadata store; bkadmin listbookies lists those that have one"
        )
    text = found[0].decode("utf-8", "replace").rstrip("\n")
    done(output, text, bookie=bookie, version=found[1], cookie=text)
