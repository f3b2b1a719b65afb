"""`bkadmin whoisauditor`."""

import click

from admin.bkadmin.options import Cluster, with_cluster, with_output
from bookie.terminal.output import done


@click.command()
@with_cluster
@with_output
def command(*, cluster: Cluster, output: str) -> None:
    """Tell which process is elected as auditor: it looks for bookies that are lost and ledgers that lack replicas."""
    with cluster.open() as driver:
        auditor = driver.election.auditor()
    done(output, f"Auditor: {auditor}" if auditor else "No auditor elected", auditor=auditor)
