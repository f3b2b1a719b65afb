"""`bkadmin deleteledger`."""

import click

from admin.bkadmin.options import Cluster, sure, with_cluster, with_yes


@click.command()
@click.argument("ledger", type=click.IntRange(min=0))
@click.option("--dry-run", is_flag=True, help="Only look whether it is there.")
@with_cluster
@with_yes
def command(*, ledger: int, dry_run: bool, cluster: Cluster, yes: bool) -> None:
    """Delete a LEDGER: its metadata goes now, its entries with the next garbage collection. Nothing brings it back."""
    with cluster.open() as driver:
        found = driver.ledgers.read(ledger)
        about = f"ledger {ledger} ({found.value.state.name}, {found.value.length} bytes)"
        if dry_run:
            click.echo(f"would delete {about}")
            return
        sure(f"delete {about} for ever?", yes=yes)
        driver.ledgers.delete(ledger, found.version)
    click.echo(f"ledger {ledger} is deleted")
