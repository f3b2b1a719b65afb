"""`bkadmin initnewcluster`: create the metadata of a new cluster."""

import click

from bookie.terminal.output import done
from bookie_admin.bkadmin.options import Cluster, with_cluster, with_output


@click.command()
@with_cluster
@with_output
def command(*, cluster: Cluster, output: str) -> None:
    """Create the metadata of a new cluster. If there is one already, nothing is changed, and the exit code is 1."""
    with cluster.open(new=True) as driver:
        instance_id = driver.cluster.initialize()
    done(output, f"created cluster {instance_id}", instance_id=instance_id)
