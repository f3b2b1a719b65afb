"""`bkadmin forceauditchecks`."""

import click

from admin.bkadmin.options import Cluster, with_cluster


@click.command()
@click.option("-calc", "--checkallledgerscheck", "ledgers", is_flag=True, help="The check of all ledgers.")
@click.option("-ppc", "--placementpolicycheck", "placement", is_flag=True, help="The check of their placement.")
@click.option("-rc", "--replicascheck", "replicas", is_flag=True, help="The check of their replicas.")
@with_cluster
def command(*, ledgers: bool, placement: bool, replicas: bool, cluster: Cluster) -> None:
    """Let the auditor that is elected next run these checks at once: their last run is forgotten."""
    from bookie.metadata.replication import Check  # noqa: PLC0415

    chosen = {Check.ALL_LEDGERS: ledgers, Check.PLACEMENT: placement, Check.REPLICAS: replicas}
    if not any(chosen.values()):
        raise click.UsageError("name a check: -calc, -ppc or -rc")
    with cluster.open() as driver:
        for check, wanted in chosen.items():
            if wanted:
                driver.replication.set_last_check_ms(check, 0)
    click.echo("the next auditor runs them")
