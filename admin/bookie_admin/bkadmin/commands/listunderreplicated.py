"""`bkadmin listunderreplicated`: list under-replicated ledgers and the bookies that lack a replica."""

import click

from bookie.terminal.output import Moment, show
from bookie_admin.bkadmin.auditor import warn_without_auditor
from bookie_admin.bkadmin.options import Cluster, with_cluster, with_output


@click.command()
@click.option(
    "-mr", "--missing-replica", "missing", help="List only ledgers that lack a replica on the bookie of this id."
)
@click.option(
    "-emr",
    "--excluding-missing-replica",
    "excluded",
    help="Leave out ledgers that lack a replica on the bookie of this id.",
)
@click.option(
    "-pmr",
    "--printmissingreplica",
    "_always",
    is_flag=True,
    help="Accepted for compatibility; the bookies are always shown.",
)
@click.option(
    "-prw",
    "--printreplicationworkerid",
    "workers",
    is_flag=True,
    help="Show the worker that is replicating each ledger.",
)
@click.option("-c", "--count", "only_count", is_flag=True, help="Show only the number of ledgers.")
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
    """List the under-replicated ledgers and the bookies on which they lack a replica."""
    with cluster.open() as driver:
        marks = [
            mark
            for piece in driver.replication.marks()
            for mark in piece
            if (missing is None or missing in mark.missing) and excluded not in mark.missing
        ]
        holders = driver.replication.holders() if workers else {}
        warn_without_auditor(driver)
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
