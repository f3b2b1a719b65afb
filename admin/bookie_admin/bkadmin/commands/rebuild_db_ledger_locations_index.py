"""`bkadmin rebuild-db-ledger-locations-index`: rebuild the location index from the entry logs."""

from pathlib import Path
from typing import Any

import click

from bookie.storage.layout import current
from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import progress_bar, show
from bookie_admin.bkadmin.options import bookie_files, sure, with_configuration, with_dry_run, with_output, with_yes


@click.command()
@click.option("--skip-unreadable", is_flag=True, help="Skip entry logs that cannot be read; they are listed.")
@with_configuration
@with_output
@with_yes
@with_dry_run
@click.pass_context
def command(
    context: click.Context, *, skip_unreadable: bool, conf: Path | None, output: str, yes: bool, dry_run: bool
) -> None:
    """Rebuild the location index of a stopped bookie from its entry logs.

    Master keys, fences and explicit LACs are taken over from the old index, which is replaced at the very end. A
    ledger that is in the logs but not in the old index becomes fenced. The exit code is 3 when logs were skipped.
    """
    from bookie.storage.tools.locking import locked  # noqa: PLC0415
    from bookie.storage.tools.rebuild_index import RebuildOptions, rebuild_index  # noqa: PLC0415

    files = bookie_files(conf)
    question = f"rebuild the index of {', '.join(map(str, files.ledgers))}?"
    if not sure(question, yes=yes, dry_run=dry_run, output=output):
        return
    options = RebuildOptions(skip_unreadable=skip_unreadable)
    rows: list[dict[str, Any]] = []
    with locked(files.all), progress_bar("entry logs") as progress:
        for position, directory in enumerate(files.ledgers):
            built = rebuild_index(current(directory), files.index(position), options=options, progress=progress)
            refused = [one.path for one in built.logs if one.refused]
            row: dict[str, Any] = {
                "directory": str(directory),
                "logs": len(built.logs),
                "entries": built.entries,
                "runs": built.runs,
            }
            row |= {"ledgers": len(built.ledgers), "skipped": refused}
            rows.append({**row, "without_record": len(built.without_record)})
    show(output, "indexes", rows)
    if any(row["skipped"] for row in rows):
        context.exit(EXIT_PARTIAL)
