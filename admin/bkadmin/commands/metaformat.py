"""`bkadmin metaformat`."""

import click

from admin.bkadmin.options import Cluster, sure, with_cluster, with_output, with_yes
from bookie.errors import ClusterNotInitialized
from bookie.terminal.output import done


@click.command()
@click.option("-n", "--nonInteractive", "quiet", is_flag=True, help="Do not ask; with a cluster there, -f is needed.")
@click.option("-f", "--force", is_flag=True, help="With -n: wipe the cluster that is there.")
@click.option("--dry-run", is_flag=True, help="Only tell what is there.")
@with_cluster
@with_output
@with_yes
def command(*, quiet: bool, force: bool, dry_run: bool, cluster: Cluster, output: str, yes: bool) -> None:
    """Delete all metadata of the cluster, and make a new one. Every ledger is lost.

    Refused while a bookie is registered. A store of the embedded kind is named by its directory: -u lmdb:///path.
    """
    with cluster.open(new=not dry_run) as driver:
        try:
            old = driver.cluster.instance_id() or "without an id"
        except ClusterNotInitialized:
            old = None
        if dry_run:
            done(output, f"would wipe cluster {old}" if old else "there is no cluster to wipe", instance_id=old)
            return
        if old is not None:
            if quiet and not force and not yes:
                raise click.UsageError(f"there is a cluster ({old}): -n needs -f")
            sure(f"delete cluster {old} with all its ledgers for ever?", yes=yes or (quiet and force))
            driver.cluster.destroy()
        instance_id = driver.cluster.initialize()
    done(output, f"a new cluster: {instance_id}", instance_id=instance_id, old=old)
