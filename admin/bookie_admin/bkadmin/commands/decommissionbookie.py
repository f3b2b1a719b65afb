"""`bkadmin decommissionbookie`: have all ledgers of a stopped bookie re-replicated, and wait."""

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import progress_bar, show
from bookie_admin.bkadmin.auditor import warn_without_auditor
from bookie_admin.bkadmin.options import Cluster, bookie_ids, sure, with_cluster, with_dry_run, with_output, with_yes
from bookie_admin.bkadmin.unknown import warn_of_unknown

if TYPE_CHECKING:
    from bookie.client.replication.decommission import Progress


@click.command()
@click.argument("bookie", shell_complete=bookie_ids)
@click.option("--keep-cookie", is_flag=True, help="Do not delete the bookie's cookie at the end.")
@with_cluster
@with_output
@with_yes
@with_dry_run
@click.pass_context
def command(
    context: click.Context, *, bookie: str, keep_cookie: bool, cluster: Cluster, output: str, yes: bool, dry_run: bool
) -> None:
    """Have all ledgers of the stopped BOOKIE (its id) re-replicated, and wait until none is left.

    The replication workers of the cluster do the work. If the command is interrupted, call it again: it continues
    where they are. If every writable bookie is in a ledger's ensemble already, nobody can take the place of BOOKIE: the
    command says so, and goes on once another bookie is started. A ledger that cannot be copied, because its only
    replica was on this bookie, is listed with the reason, and the exit code is 3. When all ledgers are copied, the
    bookie's cookie is deleted.
    """
    sure(f"decommission bookie {bookie}?", yes=yes or dry_run)
    with progress_bar(f"ledgers of {bookie}") as bar:
        last = asyncio.run(follow(cluster, bookie, bar, dry_run=dry_run))
    if not last.total:
        warn_of_unknown(cluster, [bookie])
    rows = [{"ledger": ledger, "blocked": reason} for ledger, reason in sorted(last.blocked.items())]
    if dry_run:
        to_copy = [{"ledger": ledger, "blocked": None} for ledger in last.remaining]
        show(output, "ledgers", [*to_copy, *rows], to_copy=len(to_copy), blocked=len(rows))
        return
    deleted = not rows and not keep_cookie and delete_cookie(cluster, bookie)
    show(output, "blocked ledgers", rows, copied=last.total - len(rows), blocked=len(rows), cookie_deleted=deleted)
    if rows:
        context.exit(EXIT_PARTIAL)


async def follow(cluster: Cluster, bookie: str, bar: Callable[[int, int], None], *, dry_run: bool) -> "Progress":
    """Follow the decommission to its end and return the last progress. Where standard error is not a terminal, print a
    line for each report instead of a progress bar.
    """
    from bookie.client.replication.decommission import decommission  # noqa: PLC0415
    from bookie.client.replication.service import opened  # noqa: PLC0415

    last, told = None, False
    async with opened("bkadmin", cluster.driver(), cluster.recovery) as environment:
        async for look in decommission(environment, bookie, dry_run=dry_run):
            if last is None and look.total and not dry_run:
                await asyncio.to_thread(warn, cluster)
            bar(look.total - len(look.remaining), look.total)
            if look.total and not dry_run and (not sys.stderr.isatty() or (look.homeless and not told)):
                told = bool(look.homeless)
                click.echo(line(look), err=True)
            last = look
    assert last is not None  # the iteration yields at least once
    return last


def warn(cluster: Cluster) -> None:
    """Say if nobody will mark and copy the ledgers that are waited for."""
    with cluster.open() as driver:
        warn_without_auditor(driver, "copies ledgers by itself")


def line(look: "Progress") -> str:
    """Return the progress as one line."""
    left = f"{look.eta_s:.0f} s left" if look.eta_s is not None else "not moving yet"
    paused = "; auto-recovery is disabled: bkadmin autorecovery --enable" if look.paused else ""
    homeless = ""
    if look.homeless:
        homeless = (
            f"; every writable bookie is in the ensembles of {len(look.homeless)} of them already, such as ledger"
            f" {min(look.homeless)}: start another bookie"
        )
    return f"{len(look.remaining)} of {look.total} ledgers remain, {look.per_s:.2f}/s, {left}{paused}{homeless}"


def delete_cookie(cluster: Cluster, bookie: str) -> bool:
    """Delete the bookie's cookie; return whether there was one."""
    with cluster.open() as driver:
        found = driver.cookies.read(bookie)
        if found is not None:
            driver.cookies.remove(bookie, found[1])
    return found is not None
