"""`bkadmin nukeexistingcluster`: delete all metadata of the cluster."""

import click

from bookie.errors import IllegalOperation
from bookie.terminal.output import done
from bookie_admin.bkadmin.options import Cluster, sure, with_cluster, with_dry_run, with_output, with_yes


@click.command()
@click.option(
    "-i", "--instanceid", "instance_id", help="Instance id of the cluster, to confirm that it is the right one."
)
@click.option("-f", "--force", is_flag=True, help="Delete the cluster whatever its instance id is.")
@with_cluster
@with_output
@with_yes
@with_dry_run
def command(*, instance_id: str | None, force: bool, cluster: Cluster, output: str, yes: bool, dry_run: bool) -> None:
    """Delete all metadata of the cluster. All ledgers are lost, and bookies must be formatted before they can start
    again.

    The command is refused while a bookie is registered. The URI names the root to delete:
    zk+hierarchical://host:2181/ledgers.
    """
    if (instance_id is None) == (not force):
        raise click.UsageError("name the cluster with -i INSTANCE-ID (see bkadmin whatisinstanceid), or give -f")
    with cluster.open() as driver:
        found = driver.cluster.instance_id()
        if not force and found != instance_id:
            raise IllegalOperation(
                f"--instanceid {instance_id}: the cluster at this URI is {found}; nothing was deleted"
            )
        question = f"permanently delete cluster {found} with all its ledgers?"
        if not sure(question, yes=yes, dry_run=dry_run, output=output):
            return
        driver.cluster.destroy()
    done(output, f"deleted cluster {found}", instance_id=found, deleted=True)
