"""`bkadmin rebuild-db-ledgers-index`: rebuild the index with its ledger records; fences every ledger."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from bookie.storage.layout import current
from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import progress_bar, show
from bookie_admin.bkadmin.options import Cluster, bookie_files, sure, with_cluster, with_dry_run, with_output, with_yes

if TYPE_CHECKING:
    from bookie.metadata.driver import MetadataDriver


@click.command()
@click.option("--skip-unreadable", is_flag=True, help="Skip entry logs and journals that cannot be read.")
@click.option(
    "--journals-only",
    is_flag=True,
    help="Take master keys from the journals only, for a bookie that holds the metadata store itself.",
)
@with_cluster
@with_output
@with_yes
@with_dry_run
@click.pass_context
def command(
    context: click.Context, /, *, skip_unreadable: bool, journals_only: bool, cluster: Cluster, **how: Any
) -> None:
    """Rebuild the entire index of a stopped bookie, including its ledger records, when the old index is unusable.

    Locations are taken from the entry logs, master keys from the journals and the metadata store. Every ledger becomes
    fenced, because it is not known which ledgers were; their writers continue on other bookies. The exit code is 3
    when logs were skipped.
    """
    from bookie.storage.tools.locking import locked  # noqa: PLC0415
    from bookie.storage.tools.rebuild_index import RebuildOptions  # noqa: PLC0415
    from bookie.storage.tools.rebuild_ledgers import Place, rebuild_ledgers  # noqa: PLC0415

    files = bookie_files(cluster.conf)
    question = f"rebuild the index of {', '.join(map(str, files.ledgers))} and fence every ledger?"
    if not sure(question, **how):
        return
    options = RebuildOptions(skip_unreadable=skip_unreadable)
    journals = [current(one) for one in files.journals]
    rows: list[dict[str, Any]] = []
    store = nullcontext(None) if journals_only else cluster.open()
    with store as driver, locked(files.all), progress_bar("entry logs") as progress:
        for position, directory in enumerate(files.ledgers):
            place = Place(
                directory=current(directory),
                index=files.index(position),
                journals=journals,
                position=position,
                count=len(files.ledgers),
            )
            built = rebuild_ledgers(place, key_of=keys(driver), options=options, progress=progress)
            row = {"directory": str(directory), "ledgers": built.ledgers, "entries": built.index.entries}
            skipped = [one.path for one in built.index.logs if one.refused]
            rows.append({**row, "skipped": skipped, "without_key": list(built.without_key)})
    show(how["output"], "indexes", rows)
    if any(row["skipped"] for row in rows):
        context.exit(EXIT_PARTIAL)


def keys(driver: "MetadataDriver | None") -> Callable[[int], bytes | None]:
    """Return a function that derives a ledger's master key from its metadata; it returns None for an unknown ledger."""
    from bookie.client.entries.digest import master_key  # noqa: PLC0415
    from bookie.errors import NoSuchLedgerMetadata  # noqa: PLC0415

    def key_of(ledger: int) -> bytes | None:
        if driver is None:
            return None
        try:
            return master_key(driver.ledgers.read(ledger).value.password)
        except NoSuchLedgerMetadata:
            return None

    return key_of
