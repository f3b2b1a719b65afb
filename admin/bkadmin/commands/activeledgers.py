"""`bkadmin activeledgers`."""

from pathlib import Path

import click

from admin.bkadmin.options import Cluster, bookie_files, with_cluster, with_output
from bookie.errors import NoSuchLedgerMetadata
from bookie.terminal.output import Bytes, show


@click.command()
@click.argument("log", required=False)
@click.option("-l", "--logid", "log_id", help="The same, as Apache BookKeeper's shell has it.")
@with_cluster
@with_output
def command(*, log: str | None, log_id: str | None, cluster: Cluster, output: str) -> None:
    """List the ledgers of an entry LOG (a file, or its id in hexadecimal) that still exist, and their bytes in it."""
    from bookie.storage.tools.list_records import log_ledgers  # noqa: PLC0415

    name = log or log_id
    if name is None:
        raise click.UsageError("name an entry log")
    path = Path(name) if cluster.conf is None else bookie_files(cluster.conf).file(name, ".log")
    sums = log_ledgers(path)
    rows = []
    with cluster.open() as driver:
        for ledger, one in sums.items():
            try:
                driver.ledgers.read(ledger)
            except NoSuchLedgerMetadata:
                continue
            rows.append({"ledger": ledger, "entries": one.entries, "bytes": Bytes(one.bytes)})
    show(output, "ledgers", rows, log=str(path), deleted=len(sums) - len(rows))
