"""`bkadmin triggeraudit`."""

import click

from admin.bkadmin.options import Cluster, with_cluster
from bookie.errors import IllegalOperation


@click.command()
@with_cluster
def command(*, cluster: Cluster) -> None:
    """Have the auditor look for lost bookies now."""
    with cluster.open() as driver:
        if driver.election.auditor() is None:
            raise IllegalOperation("no auditor is elected: set autoRecoveryDaemonEnabled, or run bkadmin autorecovery")
        # Writing the delay that is set already is what auditors take as an order.
        driver.replication.set_lost_bookie_delay_s(driver.replication.lost_bookie_delay_s() or 0)
    click.echo("the auditor is told")
