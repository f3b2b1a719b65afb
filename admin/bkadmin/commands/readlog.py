"""`bkadmin readlog`."""

from pathlib import Path

import click

from admin.bkadmin.options import ID, bookie_files, with_configuration, with_output
from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import show_long


@click.command()
@click.argument("log")
@click.option("-l", "--ledgerid", "ledger", type=ID, help="Only entries of this ledger.")
@click.option("-e", "--entryid", "entry", type=ID, help="Only entries of this id.")
@click.option("-sp", "--startpos", "start", type=ID, default=0, help="Only from this byte on.")
@click.option("-ep", "--endpos", "end", type=ID, help="Only up to this byte.")
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
    """List the records of an entry LOG: a file, or its id in hexadecimal. Of ours or of a Java bookie.

    The exit code is 3 when the log ends in the middle of a record.
    """
    from bookie.storage.tools.list_records import LogRecords  # noqa: PLC0415

    path = Path(log) if conf is None else bookie_files(conf).file(log, ".log")
    found = LogRecords(path, ledger, entry, start, end)
    rows = (one._asdict() for one in found)
    show_long(output, "records", rows, lambda: {"end": found.end, "torn": found.torn})
    if found.torn:
        context.exit(EXIT_PARTIAL)
