"""`bkadmin queryautorecoverystatus`: show which ledgers are being re-replicated, and by which worker."""

import click

from admin.bkadmin.auditor import warn_without_auditor
from admin.bkadmin.options import Cluster, with_cluster, with_output
from bookie.terminal.output import show


@click.command()
@with_cluster
@with_output
def command(*, cluster: Cluster, output: str) -> None:
    """List the ledgers that are being re-replicated, and the worker of each."""
    with cluster.open() as driver:
        holders = driver.replication.holders()
        warn_without_auditor(driver)
    show(output, "tasks", [{"ledger": ledger, "worker": holders[ledger]} for ledger in sorted(holders)])
