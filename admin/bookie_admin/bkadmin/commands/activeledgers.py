"""`bkadmin activeledgers`: list the ledgers of an entry log that still exist."""

from pathlib import Path

import click

from bookie.errors import NoSuchLedgerMetadata
from bookie.terminal.output import Bytes, Count, show
from bookie_admin.bkadmin.options import Cluster, bookie_files, with_cluster, with_output


@click.command()
@click.argument("log", required=False)
@click.option("-l", "--logid", "log_id", help="Same as LOG, in the syntax of Apache BookKeeper's shell.")
@with_cluster
@with_output
def command(*, log: str | None, log_id: str | None, cluster: Cluster, output: str) -> None:
    """List the ledgers of an entry LOG that still exist, and the bytes of each in it.

    LOG is the path of a file, or with --conf also the id of a log in hexadecimal. Ledgers that no longer exist are
    only counted.
    """
    from bookie.storage.tools.list_records import log_ledgers  # noqa: PLC0415

    name = log or log_id
    if name is None:
        raise click.UsageError("LOG is missing: name an entry log")
    path = Path(name) if cluster.conf is None else bookie_files(cluster.conf).file(name, ".log")
    sums = log_ledgers(path)
    rows = []
    with cluster.open() as driver:
        for ledger, one in sums.items():
            try:
                driver.ledgers.read(ledger)
            except NoSuchLedgerMetadata:
                continue
            rows.append({"ledger": ledger, "entries": Count(one.entries), "bytes": Bytes(one.bytes)})
    show(output, "ledgers", rows, log=str(path), deleted=len(sums) - len(rows))
