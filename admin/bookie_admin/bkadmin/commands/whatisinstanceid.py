"""`bkadmin whatisinstanceid`: show the instance id of the cluster."""

import click

from bookie.terminal.output import show
from bookie_admin.bkadmin.options import Cluster, with_cluster, with_output


@click.command()
@with_cluster
@with_output
def command(*, cluster: Cluster, output: str) -> None:
    """Show the instance id of the cluster, which is part of the cookie of every bookie."""
    with cluster.open() as driver:
        show(output, "", instance_id=driver.cluster.instance_id())
