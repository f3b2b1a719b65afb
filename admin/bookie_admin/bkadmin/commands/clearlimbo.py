"""`bkadmin clearlimbo`: let a stopped bookie trust its ledgers in limbo again."""

from typing import TYPE_CHECKING, Any

import click

from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import show
from bookie_admin.bkadmin.options import Cluster, bookie_files, sure, with_cluster, with_dry_run, with_output, with_yes

if TYPE_CHECKING:
    from bookie.metadata.driver import MetadataDriver


@click.command()
@with_cluster
@with_output
@with_yes
@with_dry_run
@click.pass_context
def command(context: click.Context, /, *, cluster: Cluster, **how: Any) -> None:
    """Let the stopped bookie of --conf answer "no such entry" again for the ledgers that `bkadmin replacedisk` or a
    crash without a journal put into limbo.

    Do this after `bkadmin restorebookie` has ended with exit code 0. Ledgers that are not closed stay in limbo, since a
    recovery could lose entries if this bookie denied them; they are listed, and the exit code is 3.
    """
    from bookie.repair.distrust import clear_limbo, in_limbo  # noqa: PLC0415
    from bookie.storage.tools.locking import locked  # noqa: PLC0415

    files = bookie_files(cluster.conf)
    if not sure("let this bookie trust the closed ledgers that are in limbo?", **how):
        return
    indexes = [files.index(position) for position in range(len(files.ledgers))]
    with cluster.open() as driver, locked(files.all):
        limbo = in_limbo(indexes)
        closed = {ledger for ledger in limbo if _is_closed(driver, ledger)}
        cleared = clear_limbo(closed, indexes)
    left = sorted(limbo - closed)
    show(how["output"], "", cleared=cleared, left=left)
    if left:
        context.exit(EXIT_PARTIAL)


def _is_closed(driver: "MetadataDriver", ledger: int) -> bool:
    """Return whether a ledger is closed, or was deleted."""
    from bookie.errors import NoSuchLedgerMetadata  # noqa: PLC0415
    from bookie.metadata.records.ledger_metadata import LedgerState  # noqa: PLC0415

    try:
        return driver.ledgers.read(ledger).value.state is LedgerState.CLOSED
    except NoSuchLedgerMetadata:
        return True
