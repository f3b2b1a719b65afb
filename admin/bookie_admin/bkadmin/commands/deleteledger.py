"""`bkadmin deleteledger`: delete a ledger; its bookies reclaim the space later."""

import click

from bookie.plural import counted
from bookie.terminal.output import done
from bookie_admin.bkadmin.options import ID, Cluster, sure, with_cluster, with_dry_run, with_output, with_yes


@click.command()
@click.argument("ledger", type=ID)
@with_cluster
@with_output
@with_yes
@with_dry_run
def command(*, ledger: int, cluster: Cluster, output: str, yes: bool, dry_run: bool) -> None:
    """Permanently delete a LEDGER. Its metadata goes at once, its entries with the next garbage collection of each
    bookie.
    """
    with cluster.open() as driver:
        found = driver.ledgers.read(ledger)
        about = f"ledger {ledger} ({found.value.state.name}, {counted(found.value.length, 'byte')})"
        if not sure(f"permanently delete {about}?", yes=yes, dry_run=dry_run, output=output):
            return
        driver.ledgers.delete(ledger, found.version)
    done(output, f"deleted ledger {ledger}", ledger=ledger, deleted=True)
