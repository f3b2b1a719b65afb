"""`bkadmin cookie_delete`."""

import click

from admin.bkadmin.options import Cluster, sure, with_cluster, with_yes
from bookie.errors import IllegalOperation


@click.command()
@click.argument("bookie")
@with_cluster
@with_yes
def command(*, bookie: str, cluster: Cluster, yes: bool) -> None:
    """Remove the cookie of BOOKIE (its id) from the metadata store: it can then start as a new, empty bookie.

    Refused while the bookie is registered. What it held must have been copied before: see decommissioning.
    """
    with cluster.open() as driver:
        found = driver.cookies.read(bookie)
        if found is None:
            raise IllegalOperation(f"bookie {bookie} has no cookie; there is nothing to delete")
        if any(bookie in driver.bookies.present(read_only=mode) for mode in (False, True)):
            raise IllegalOperation(f"bookie {bookie} is running; stop it first")
        sure(f"delete the cookie of bookie {bookie}?", yes=yes)
        driver.cookies.remove(bookie, found[1])
    click.echo(f"the cookie of bookie {bookie} is deleted")
