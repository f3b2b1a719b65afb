"""`bkadmin decommissionbookie`."""

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from admin.bkadmin.options import Cluster, sure, with_cluster, with_dry_run, with_output, with_yes
from admin.bkadmin.unknown import warn_of_unknown
from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import progress_bar, show

if TYPE_CHECKING:
    from bookie.client.replication.decommission import Progress


@click.command()
@click.argument("bookie")
@click.option("--keep-cookie", is_flag=True, help="Do not delete its cookie at the end.")
@with_cluster
@with_output
@with_yes
@with_dry_run
@click.pass_context
def command(
    context: click.Context, *, bookie: str, keep_cookie: bool, cluster: Cluster, output: str, yes: bool, dry_run: bool
) -> None:
    """Have everything on BOOKIE (its id), which is stopped, copied to others, and wait until nothing is left.

    The replicators of the cluster do the work; broken off, the command goes on where they are when it is called again.
    What cannot be copied, because the only replica was there, is told with its reason, and the exit code is 3. When all
    is copied the cookie is deleted.
    """
    sure(f"take bookie {bookie} out of the cluster?", yes=yes or dry_run)
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
    """Until nothing is left; a line about how far it is where nobody sees a bar."""
    from bookie.client.replication.decommission import decommission  # noqa: PLC0415
    from bookie.client.replication.service import opened  # noqa: PLC0415

    last = None
    async with opened("bkadmin", cluster.driver(), {}) as world:
        async for look in decommission(world, bookie, dry_run=dry_run):
            bar(look.total - len(look.remaining), look.total)
            if look.total and not dry_run and not sys.stderr.isatty():
                click.echo(line(look), err=True)
            last = look
    assert last is not None  # it ends with a look
    return last


def line(look: "Progress") -> str:
    """How far it is."""
    left = f"{look.eta_s:.0f} s left" if look.eta_s is not None else "not moving yet"
    paused = "; auto-recovery is off: bkadmin autorecovery --enable" if look.paused else ""
    return f"{len(look.remaining)} of {look.total} ledgers remain, {look.per_s:.2f}/s, {left}{paused}"


def delete_cookie(cluster: Cluster, bookie: str) -> bool:
    """Whether there was one."""
    with cluster.open() as driver:
        found = driver.cookies.read(bookie)
        if found is not None:
            driver.cookies.remove(bookie, found[1])
    return found is not None
