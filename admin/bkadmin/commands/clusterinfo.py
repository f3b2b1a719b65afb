"""`bkadmin clusterinfo`."""

import click

from admin.bkadmin.options import Cluster, with_cluster, with_output
from bookie.terminal.output import show


@click.command()
@with_cluster
@with_output
def command(*, cluster: Cluster, output: str) -> None:
    """Sum up the cluster: bookies by state, the auditor, and whether ledgers lack replicas."""
    with cluster.open() as driver:
        writable, read_only = (driver.bookies.present(read_only=mode) for mode in (False, True))
        known = driver.bookies.known() | writable | read_only
        auditor = driver.election.auditor()
        lacking = sum(map(len, driver.replication.marks()))
        show(
            output,
            "",
            instance_id=driver.cluster.instance_id(),
            bookies=len(known),
            writable=len(writable),
            read_only=len(read_only - writable),
            absent=len(known - writable - read_only),
            auditor=auditor,
            replication_enabled=driver.replication.enabled(),
            underreplicated_ledgers=lacking,
        )
