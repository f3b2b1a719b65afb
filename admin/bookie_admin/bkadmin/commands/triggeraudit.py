"""`bkadmin triggeraudit`: make the auditor look for lost bookies now."""

import click

from bookie.errors import IllegalOperation
from bookie.terminal.output import done
from bookie_admin.bkadmin.auditor import NO_AUDITOR
from bookie_admin.bkadmin.options import Cluster, with_cluster, with_output


@click.command()
@with_cluster
@with_output
def command(*, cluster: Cluster, output: str) -> None:
    """Make the auditor look for lost bookies now."""
    with cluster.open() as driver:
        auditor = driver.election.auditor()
        if auditor is None:
            raise IllegalOperation(NO_AUDITOR)
        # Auditors take a write of the same delay as a request to run.
        driver.replication.set_lost_bookie_delay_s(driver.replication.lost_bookie_delay_s() or 0)
    done(output, "triggered an audit", auditor=auditor)
