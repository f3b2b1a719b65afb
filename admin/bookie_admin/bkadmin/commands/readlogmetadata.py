"""`bkadmin readlogmetadata`: list the ledgers of an entry log and how many bytes each has in it."""

from pathlib import Path

import click

from bookie.terminal.output import Bytes, Count, show
from bookie_admin.bkadmin.options import bookie_files, with_configuration, with_output


@click.command()
@click.argument("log")
@with_configuration
@with_output
def command(*, log: str, conf: Path | None, output: str) -> None:
    """List the ledgers of an entry LOG and the bytes of each in it.

    LOG is the path of a file, or with --conf also the id of a log in hexadecimal. The records are counted one by one;
    the ledger map at the end of the file is not used.
    """
    from bookie.storage.tools.list_records import log_ledgers  # noqa: PLC0415

    path = Path(log) if conf is None else bookie_files(conf).file(log, ".log")
    sums = log_ledgers(path)
    rows = [
        {"ledger": ledger, "entries": Count(one.entries), "bytes": Bytes(one.bytes)} for ledger, one in sums.items()
    ]
    show(output, "ledgers", rows, log=str(path))
