"""`bkadmin readjournal`: list the records of a journal file."""

from pathlib import Path

import click

from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import show_long
from bookie_admin.bkadmin.options import ID, bookie_files, with_configuration, with_output


@click.command()
@click.argument("journal")
@click.option("-l", "--ledgerid", "ledger", type=ID, help="List only records of this ledger.")
@with_configuration
@with_output
@click.pass_context
def command(context: click.Context, *, journal: str, ledger: int | None, conf: Path | None, output: str) -> None:
    """List the records of a JOURNAL file, written by this bookie or by Apache BookKeeper's.

    JOURNAL is the path of a file, or with --conf also the id of a journal file in hexadecimal. Master keys are not
    shown. The exit code is 3 when the file is damaged; an incomplete record at its end is normal after a crash.
    """
    from bookie.storage.tools.list_records import JournalRecords  # noqa: PLC0415

    path = Path(journal) if conf is None else bookie_files(conf).file(journal, ".txn", journal=True)
    found = JournalRecords(path, ledger)
    file = found.file
    rows = (one._asdict() for one in found)
    facts = {"version": file.version, "end": file.end, "torn": file.torn, "damaged": file.damaged}
    show_long(output, "records", rows, lambda: facts)
    if file.damaged:
        context.exit(EXIT_PARTIAL)
