"""`bkadmin deleteledger`."""

import click

from admin.bkadmin.options import ID, Cluster, sure, with_cluster, with_dry_run, with_output, with_yes
from bookie.terminal.output import done


@click.command()
@click.argument("ledger", type=ID)
@with_cluster
@with_output
@with_yes
@with_dry_run
def command(*, ledger: int, cluster: Cluster, output: str, yes: bool, dry_run: bool) -> None:
    """Delete a LEDGER: its metadata goes now, its entries with the next garbage collection. Nothing brings it back."""
    with cluster.open() as driver:
        found = driver.ledgers.read(ledger)
        about = f"ledger {ledger} ({found.value.state.name}, {found.value.length} bytes)"
        if not sure(f"delete {about} for ever?", yes=yes, dry_run=dry_run, output=output):
            return
        driver.ledgers.delete(ledger, found.version)
    done(output, f"ledger {ledger} is deleted", ledger=ledger, deleted=True)
