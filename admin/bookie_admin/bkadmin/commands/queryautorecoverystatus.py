"""`bkadmin queryautorecoverystatus`: show which ledgers are being re-replicated, and by which worker."""

import click

from bookie.terminal.output import show
from bookie_admin.bkadmin.auditor import warn_without_auditor
from bookie_admin.bkadmin.options import Cluster, with_cluster, with_output


@click.command()
@with_cluster
@with_output
def command(*, cluster: Cluster, output: str) -> None:
    """List the ledgers that are being re-replicated, and the worker of each."""
    with cluster.open() as driver:
        holders = driver.replication.holders()
        warn_without_auditor(driver)
    show(output, "tasks", [{"ledger": ledger, "worker": holders[ledger]} for ledger in sorted(holders)])
