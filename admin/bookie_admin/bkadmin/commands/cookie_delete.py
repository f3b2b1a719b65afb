"""`bkadmin cookie_delete`: delete a bookie's cookie from the metadata store."""

import click

from bookie.errors import IllegalOperation
from bookie.metadata.bookies.states import is_registered
from bookie.terminal.output import done
from bookie_admin.bkadmin.options import Cluster, bookie_ids, sure, with_cluster, with_dry_run, with_output, with_yes


@click.command()
@click.argument("bookie", shell_complete=bookie_ids)
@with_cluster
@with_output
@with_yes
@with_dry_run
def command(*, bookie: str, cluster: Cluster, output: str, yes: bool, dry_run: bool) -> None:
    """Delete the cookie of BOOKIE (its id) from the metadata store, so that it can start as a new, empty bookie.

    The command is refused while the bookie is registered. Re-replicate its ledgers before, with
    bkadmin decommissionbookie.
    """
    with cluster.open() as driver:
        found = driver.cookies.read(bookie)
        if found is None:
            raise IllegalOperation(f"bookie {bookie} has no cookie to delete; bkadmin listbookies lists all")
        if is_registered(driver.bookies, bookie):
            raise IllegalOperation(f"bookie {bookie} is running; stop it first")
        if not sure(f"delete the cookie of bookie {bookie}?", yes=yes, dry_run=dry_run, output=output):
            return
        driver.cookies.remove(bookie, found[1])
    done(output, f"deleted the cookie of bookie {bookie}", bookie=bookie, deleted=True)
