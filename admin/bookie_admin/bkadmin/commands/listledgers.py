"""`bkadmin listledgers`: list all ledgers, or those of one bookie."""

from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import click

from bookie.terminal.output import show_long
from bookie_admin.bkadmin.options import Cluster, bookie_ids, with_cluster, with_output
from bookie_admin.bkadmin.unknown import warn_of_unknown

if TYPE_CHECKING:
    from bookie.metadata.driver import MetadataDriver


@click.command()
@click.option(
    "-m", "--meta", is_flag=True, help="Show state, size and quorums too; this reads the metadata of every ledger."
)
@click.option(
    "-bookieid",
    "--bookie",
    shell_complete=bookie_ids,
    help="List only ledgers with a segment on the bookie of this id.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Stop after this many ledgers.")
@with_cluster
@with_output
def command(*, meta: bool, bookie: str | None, limit: int | None, cluster: Cluster, output: str) -> None:
    """List the ledgers of the cluster in the order of their ids."""
    with cluster.open() as driver:
        rows = found(driver, bookie, described=meta)
        first = list(islice(rows, 1))
        show_long(output, "ledgers", islice(chain(first, rows), limit))
    if bookie is not None and not first:
        warn_of_unknown(cluster, [bookie])


def found(driver: "MetadataDriver", bookie: str | None, *, described: bool) -> Iterator[dict[str, Any]]:
    """Yield a row for each ledger; only those on `bookie`, unless it is None."""
    from bookie.errors import NoSuchLedgerMetadata  # noqa: PLC0415

    for ids in driver.ledgers.ranges():
        for ledger in ids:
            if not described and bookie is None:
                yield {"ledger": ledger}
                continue
            try:
                value = driver.ledgers.read(ledger).value
            except NoSuchLedgerMetadata:  # the ledger was deleted after it was listed
                continue
            if bookie is not None and not any(bookie in one.bookies for one in value.segments):
                continue
            row: dict[str, Any] = {"ledger": ledger}
            if described:
                quorums = f"{value.ensemble_size}/{value.write_quorum}/{value.ack_quorum}"
                row |= {"state": value.state.name, "last_entry": value.last_entry, "length": value.length}
                row |= {"quorums": quorums, "segments": len(value.segments)}
            yield row
