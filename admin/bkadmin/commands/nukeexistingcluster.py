"""`bkadmin nukeexistingcluster`."""

import click

from admin.bkadmin.options import Cluster, sure, with_cluster, with_dry_run, with_output, with_yes
from bookie.errors import IllegalOperation
from bookie.terminal.output import done


@click.command()
@click.option("-i", "--instanceid", "instance_id", help="The instance id of the cluster that is meant.")
@click.option("-f", "--force", is_flag=True, help="Whatever its instance id is.")
@with_cluster
@with_output
@with_yes
@with_dry_run
def command(*, instance_id: str | None, force: bool, cluster: Cluster, output: str, yes: bool, dry_run: bool) -> None:
    """Delete all metadata of the cluster. Every ledger is lost, and bookies must be formatted before they start again.

    Refused while a bookie is registered. The URI says which root: zk+hierarchical://host:2181/ledgers.
    """
    if (instance_id is None) == (not force):
        raise click.UsageError("name the cluster with -i INSTANCE-ID (bkadmin whatisinstanceid), or say -f")
    with cluster.open() as driver:
        found = driver.cluster.instance_id()
        if not force and found != instance_id:
            raise IllegalOperation(f"this is cluster {found}, not {instance_id}; nothing was deleted")
        question = f"delete cluster {found} with all its ledgers for ever?"
        if not sure(question, yes=yes, dry_run=dry_run, output=output):
            return
        driver.cluster.destroy()
    done(output, f"cluster {found} is deleted", instance_id=found, deleted=True)
