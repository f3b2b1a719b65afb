"""`bkadmin localconsistencycheck`: check entry logs, journals and index against each other."""

from pathlib import Path
from typing import Any

import click

from bookie.plural import counted
from bookie.storage.layout import current
from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import progress_bar, show
from bookie_admin.bkadmin.options import Directories, bookie_files, with_configuration, with_output


@click.command()
@with_configuration
@with_output
@click.pass_context
def command(context: click.Context, *, conf: Path | None, output: str) -> None:
    """Check the files of a stopped bookie: every record of its entry logs and journals, and every entry of its index.

    An index entry must point at the record of that entry. Nothing is changed. Each problem is shown with its remedy,
    and the exit code is 3 when there is any.
    """
    files = bookie_files(conf)
    with progress_bar("entry logs") as progress:
        rows = [*logs(files, progress), *journals(files), *indexes(files)]
    bad = sum(not row["sound"] for row in rows)
    show(output, "files", rows, not_sound=bad)
    if bad:
        context.exit(EXIT_PARTIAL)


def logs(files: Directories, progress: Any) -> list[dict[str, Any]]:
    """Return a row for each entry log."""
    from bookie.storage.tools.check_logs import check_logs  # noqa: PLC0415

    return [
        {
            "path": one.path,
            "sound": one.sound,
            "records": one.records,
            "problem": one.problem or one.map_problem or None,
        }
        for directory in files.ledgers
        for one in check_logs(current(directory), progress=progress)
    ]


def journals(files: Directories) -> list[dict[str, Any]]:
    """Return a row for each journal file."""
    from bookie.storage.tools.check_journals import check_journals  # noqa: PLC0415
    from bookie.storage.tools.files import last_marks  # noqa: PLC0415

    rows = []
    marks = last_marks([current(one) for one in files.ledgers], len(files.journals))
    for position, directory in enumerate(files.journals):
        mine = (one for one in marks if one.journal == position and one.counts)
        mark = next(((one.file_id or 0, one.offset or 0) for one in mine), (0, 0))
        rows += [
            {"path": one.path, "sound": one.sound, "records": one.records, "problem": one.problem or None}
            for one in check_journals(current(directory), mark)
        ]
    return rows


def indexes(files: Directories) -> list[dict[str, Any]]:
    """Return a row for each index."""
    from bookie.errors import ToolRefused  # noqa: PLC0415
    from bookie.storage.tools.check_index import check_index  # noqa: PLC0415

    rows: list[dict[str, Any]] = []
    for position, directory in enumerate(files.ledgers):
        index = files.index(position)
        try:
            found = check_index(index, current(directory))
        except ToolRefused as error:
            rows.append({"path": str(index), "sound": False, "records": None, "problem": str(error)})
            continue
        first = next(iter(found.wrong), None)
        problem = None if found.sound else f"not where the index says: {counted(found.wrong_count, 'entry')}"
        if problem and first:
            problem += f"; the first: ledger {first.ledger}, entry {first.entry}: {first.why}"
        rows.append({"path": str(index), "sound": found.sound, "records": found.entries, "problem": problem})
    return rows
