"""`bkadmin whoisauditor`: show which process is the auditor."""

import click

from bookie.terminal.output import done
from bookie_admin.bkadmin.auditor import REMEDY
from bookie_admin.bkadmin.options import Cluster, with_cluster, with_output


@click.command()
@with_cluster
@with_output
def command(*, cluster: Cluster, output: str) -> None:
    """Show which process is elected auditor: it looks for lost bookies and under-replicated ledgers."""
    with cluster.open() as driver:
        auditor = driver.election.auditor()
    done(output, f"Auditor: {auditor}" if auditor else f"No auditor elected: {REMEDY}", auditor=auditor)
