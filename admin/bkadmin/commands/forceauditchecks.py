"""`bkadmin forceauditchecks`."""

import click

from admin.bkadmin.options import Cluster, with_cluster, with_output
from bookie.terminal.output import done


@click.command()
@click.option("-calc", "--checkallledgerscheck", "ledgers", is_flag=True, help="The check of all ledgers.")
@click.option("-ppc", "--placementpolicycheck", "placement", is_flag=True, help="The check of their placement.")
@click.option("-rc", "--replicascheck", "replicas", is_flag=True, help="The check of their replicas.")
@with_cluster
@with_output
def command(*, ledgers: bool, placement: bool, replicas: bool, cluster: Cluster, output: str) -> None:
    """Let the auditor that is elected next run these checks at once: their last run is forgotten."""
    from bookie.metadata.records.replication import Check  # noqa: PLC0415

    wanted = {Check.ALL_LEDGERS: ledgers, Check.PLACEMENT: placement, Check.REPLICAS: replicas}
    chosen = [check for check, is_wanted in wanted.items() if is_wanted]
    if not chosen:
        raise click.UsageError("name a check: -calc, -ppc or -rc")
    with cluster.open() as driver:
        for check in chosen:
            driver.replication.set_last_check_ms(check, 0)
    done(output, "the next auditor runs them", checks=[check.name.lower() for check in chosen])
