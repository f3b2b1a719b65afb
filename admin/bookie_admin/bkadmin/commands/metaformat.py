"""`bkadmin metaformat`: delete all metadata of the cluster and create a new one."""

import click

from bookie.errors import ClusterNotInitialized
from bookie.terminal.output import done
from bookie_admin.bkadmin.options import Cluster, sure, with_cluster, with_output, with_yes


@click.command()
@click.option(
    "-n",
    "--nonInteractive",
    "quiet",
    is_flag=True,
    help="Do not ask for confirmation; requires -f if there is a cluster.",
)
@click.option("-f", "--force", is_flag=True, help="With -n: confirm the deletion of the existing cluster.")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and change nothing.")
@with_cluster
@with_output
@with_yes
def command(*, quiet: bool, force: bool, dry_run: bool, cluster: Cluster, output: str, yes: bool) -> None:
    """Delete all metadata of the cluster and create a new cluster. All ledgers are lost.

    The command is refused while a bookie is registered. An embedded metadata store is named by its directory:
    -u lmdb:///path.
    """
    with cluster.open(new=not dry_run) as driver:
        try:
            old = driver.cluster.instance_id() or "without an id"
        except ClusterNotInitialized:
            old = None
        if dry_run:
            done(output, f"would delete cluster {old}" if old else "there is no cluster to delete", instance_id=old)
            return
        if old is not None:
            if quiet and not force and not yes:
                raise click.UsageError(f"cluster {old} exists: -n (--nonInteractive) requires -f (--force)")
            sure(f"permanently delete cluster {old} with all its ledgers?", yes=yes or (quiet and force))
            driver.cluster.destroy()
        instance_id = driver.cluster.initialize()
    done(output, f"created cluster {instance_id}", instance_id=instance_id, old=old)
