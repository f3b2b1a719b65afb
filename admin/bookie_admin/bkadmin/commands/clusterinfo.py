"""`bkadmin clusterinfo`: summarize the cluster in a few numbers."""

from collections import Counter

import click

from bookie.metadata.bookies.states import BookieState, bookie_states
from bookie.terminal.output import show
from bookie_admin.bkadmin.auditor import NO_AUDITOR
from bookie_admin.bkadmin.options import Cluster, with_cluster, with_output


@click.command()
@with_cluster
@with_output
def command(*, cluster: Cluster, output: str) -> None:
    """Summarize the cluster: bookies by state, the auditor, and the number of under-replicated ledgers."""
    with cluster.open() as driver:
        states = bookie_states(driver.bookies)
        count = Counter(states.values())
        auditor = driver.election.auditor()
        lacking = sum(map(len, driver.replication.marks()))
        show(
            output,
            "",
            instance_id=driver.cluster.instance_id(),
            bookies=len(states),
            writable=count[BookieState.WRITABLE],
            read_only=count[BookieState.READ_ONLY],
            absent=count[BookieState.ABSENT],
            auditor=auditor if auditor or output != "table" else NO_AUDITOR,
            replication_enabled=driver.replication.enabled(),
            underreplicated_ledgers=lacking,
        )
