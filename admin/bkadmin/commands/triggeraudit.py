"""`bkadmin triggeraudit`."""

import click

from admin.bkadmin.options import Cluster, with_cluster, with_output
from bookie.errors import IllegalOperation
from bookie.terminal.output import done


@click.command()
@with_cluster
@with_output
def command(*, cluster: Cluster, output: str) -> None:
    """Have the auditor look for lost bookies now."""
    with cluster.open() as driver:
        auditor = driver.election.auditor()
        if auditor is None:
            raise IllegalOperation("no auditor is elected: set autoRecoveryDaemonEnabled, or run bkadmin autorecovery")
        # Writing the delay that is set already is what auditors take as an order.
        driver.replication.set_lost_bookie_delay_s(driver.replication.lost_bookie_delay_s() or 0)
    done(output, "the auditor is told", auditor=auditor)
