"""`bkadmin recover`: re-replicate the ledgers of stopped bookies from this process."""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from bookie.errors import IllegalOperation
from bookie.metadata.bookies.states import is_registered
from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import progress_bar, show
from bookie_admin.bkadmin.forcing import force_close
from bookie_admin.bkadmin.options import (
    ID,
    Cluster,
    bookie_ids,
    sure,
    with_cluster,
    with_output,
    with_yes,
)
from bookie_admin.bkadmin.unknown import warn_of_unknown

if TYPE_CHECKING:
    from bookie.client.replication.recovering import Outcome


@click.command()
@click.argument("bookies", metavar="[BOOKIE[,BOOKIE...]]", required=False, shell_complete=bookie_ids)
@click.option(
    "--force-close",
    "forced",
    type=ID,
    metavar="LEDGER",
    help="Close this ledger although bookies that a recovery needs are gone for good. What they alone held is lost.",
)
@click.option("-l", "--ledger", type=ID, help="Re-replicate only this ledger.")
@click.option("-q", "--query", is_flag=True, help="Only list the ledgers that name the bookies.")
@click.option("-dr", "--dry-run", is_flag=True, help="Same as --query: show what would be copied, and change nothing.")
@click.option("-sk", "--skip-open-ledgers", "skip_open", is_flag=True, help="Skip ledgers that are not closed.")
@click.option(
    "-sku", "--skip-unrecoverable", "lenient", is_flag=True, help="Do not report ledgers that failed in the exit code."
)
@click.option(
    "-d", "--delete-cookie", is_flag=True, help="Delete the cookies of the bookies when all ledgers are copied."
)
@click.option(
    "-rate", "--rate", type=click.IntRange(min=0), default=0, help="Maximum rate in bytes per second; 0: no limit."
)
@with_cluster
@with_output
@with_yes
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    bookies: str | None,
    forced: int | None,
    query: bool,
    dry_run: bool,
    lenient: bool,
    delete_cookie: bool,
    **options: Any,
) -> None:
    """Re-replicate all ledgers of the given bookies (by id) from this process, without an auditor.

    The bookies must be stopped or read-only. Their open ledgers are fenced and closed. A ledger that cannot be copied
    is listed with the reason, and the exit code is 3.

    With --force-close, no bookie is given. First it is shown which entries are lost; --dry-run shows only that.
    """
    if (bookies is None) == (forced is None):
        raise click.UsageError("name either bookies or a ledger to close by force (--force-close)")
    if bookies is None:
        assert forced is not None
        force_close(forced, dry_run=query or dry_run, **{one: options[one] for one in ("cluster", "output", "yes")})
        return
    lost = frozenset(one.strip() for one in bookies.split(",") if one.strip())
    look = query or dry_run
    cluster, output, yes = options.pop("cluster"), options.pop("output"), options.pop("yes")
    if delete_cookie and not look:
        refuse_running(cluster, lost)
    if not look:
        sure(f"re-replicate all ledgers of {', '.join(sorted(lost))}?", yes=yes)
    outcomes = asyncio.run(run(cluster, lost, dry_run=look, **options))
    failed = sum(one.state == "failed" for one in outcomes)
    deleted = []
    if delete_cookie and not (look or failed) and options["ledger"] is None and not options["skip_open"]:
        with cluster.open() as driver:
            deleted = [one for one in sorted(lost) if driver.cookies.read(one) is not None]
            for one in deleted:
                driver.cookies.remove(one)
    rows = [
        {"ledger": one.ledger, "state": one.state, "segments_at": list(one.first_entries), "error": one.error}
        for one in outcomes
    ]
    show(output, "ledgers", rows, count=len(rows), failed=failed, cookies_deleted=deleted)
    if not rows:
        warn_of_unknown(cluster, lost)
    if failed and not lenient:
        context.exit(EXIT_PARTIAL)


def refuse_running(cluster: Cluster, bookies: Iterable[str]) -> None:
    """Raise IllegalOperation if one of the bookies is registered: it could not start again without its cookie."""
    with cluster.open() as driver:
        running = [one for one in sorted(bookies) if is_registered(driver.bookies, one)]
    if running:
        raise IllegalOperation(f"bookie {', '.join(running)} is running: stop it first, or omit -d (--delete-cookie)")


async def run(
    cluster: Cluster, lost: frozenset[str], *, dry_run: bool, ledger: int | None, skip_open: bool, rate: int
) -> "list[Outcome]":
    """Re-replicate the ledgers and return the outcome of each."""
    from bookie.client.replication.recovering import recover  # noqa: PLC0415
    from bookie.client.replication.service import opened  # noqa: PLC0415

    keys = cluster.recovery | ({"replicationRateByBytes": rate} if rate else {})
    outcomes = []
    async with opened("bkadmin", cluster.driver(), keys) as environment:
        with progress_bar("ledgers") as bar:
            async for one in recover(environment, lost, ledger=ledger, skip_open=skip_open, dry_run=dry_run):
                outcomes.append(one)
                bar(len(outcomes), one.total)
    return outcomes
