"""`bkadmin listunderreplicated`."""

import click

from admin.bkadmin.options import Cluster, with_cluster, with_output
from bookie.terminal.output import Moment, show


@click.command()
@click.option("-mr", "--missing-replica", "missing", help="Only ledgers that lack a replica on the bookie of this id.")
@click.option("-emr", "--excluding-missing-replica", "excluded", help="Not those that lack one on this bookie.")
@click.option("-pmr", "--printmissingreplica", "_always", is_flag=True, help="Name the bookies; done in any case.")
@click.option("-prw", "--printreplicationworkerid", "workers", is_flag=True, help="Name who copies it now.")
@click.option("-c", "--count", "only_count", is_flag=True, help="Only how many.")
@with_cluster
@with_output
def command(
    *,
    missing: str | None,
    excluded: str | None,
    _always: bool,
    workers: bool,
    only_count: bool,
    cluster: Cluster,
    output: str,
) -> None:
    """List the ledgers that wait for new replicas, and the bookies on which they lack one."""
    with cluster.open() as driver:
        marks = [
            mark
            for piece in driver.replication.marks()
            for mark in piece
            if (missing is None or missing in mark.missing) and excluded not in mark.missing
        ]
        holders = driver.replication.holders() if workers else {}
    rows = [
        {
            "ledger": mark.ledger,
            "missing_on": list(mark.missing),
            "since_ms": None if mark.marked_ms is None else Moment(mark.marked_ms),
            **({"worker": holders.get(mark.ledger)} if workers else {}),
        }
        for mark in sorted(marks, key=lambda one: one.ledger)
    ]
    show(output, "ledgers", None if only_count else rows, count=len(rows))
