"""`bkadmin forceauditchecks`: make the next auditor run its periodic checks at once."""

import click

from bookie.terminal.output import done
from bookie_admin.bkadmin.options import Cluster, with_cluster, with_output


@click.command()
@click.option("-calc", "--checkallledgerscheck", "ledgers", is_flag=True, help="Run the check of all ledgers.")
@click.option(
    "-ppc", "--placementpolicycheck", "placement", is_flag=True, help="Run the check of the placement policy."
)
@click.option("-rc", "--replicascheck", "replicas", is_flag=True, help="Run the check of the replicas.")
@with_cluster
@with_output
def command(*, ledgers: bool, placement: bool, replicas: bool, cluster: Cluster, output: str) -> None:
    """Make the auditor that is elected next run the given checks at once, by resetting the time of their last run."""
    from bookie.metadata.records.replication import Check  # noqa: PLC0415

    wanted = {Check.ALL_LEDGERS: ledgers, Check.PLACEMENT: placement, Check.REPLICAS: replicas}
    chosen = [check for check, is_wanted in wanted.items() if is_wanted]
    if not chosen:
        raise click.UsageError("no check is named: give -calc, -ppc or -rc")
    with cluster.open() as driver:
        for check in chosen:
            driver.replication.set_last_check_ms(check, 0)
    done(output, "the next auditor will run the checks", checks=[check.name.lower() for check in chosen])
