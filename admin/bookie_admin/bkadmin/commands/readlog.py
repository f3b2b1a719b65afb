"""`bkadmin readlog`: list the records of an entry log."""

from pathlib import Path

import click

from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import show_long
from bookie_admin.bkadmin.options import ID, bookie_files, with_configuration, with_output


@click.command()
@click.argument("log")
@click.option("-l", "--ledgerid", "ledger", type=ID, help="List only entries of this ledger.")
@click.option("-e", "--entryid", "entry", type=ID, help="List only entries with this id.")
@click.option("-sp", "--startpos", "start", type=ID, default=0, help="List only records from this byte offset on.")
@click.option("-ep", "--endpos", "end", type=ID, help="List only records up to this byte offset.")
@with_configuration
@with_output
@click.pass_context
def command(
    context: click.Context,
    *,
    log: str,
    ledger: int | None,
    entry: int | None,
    start: int,
    end: int | None,
    conf: Path | None,
    output: str,
) -> None:
    """List the records of an entry LOG, written by this bookie or by Apache BookKeeper's.

    LOG is the path of a file, or with --conf also the id of a log in hexadecimal. The exit code is 3 when the log ends
    in the middle of a record.
    """
    from bookie.storage.tools.list_records import LogRecords  # noqa: PLC0415

    path = Path(log) if conf is None else bookie_files(conf).file(log, ".log")
    found = LogRecords(path, ledger, entry, start, end)
    rows = (one._asdict() for one in found)
    show_long(output, "records", rows, lambda: {"end": found.end, "torn": found.torn})
    if found.torn:
        context.exit(EXIT_PARTIAL)
