"""`bkadmin restorebookie`: copy to a bookie what it lacks of its ledgers from the other replicas."""

from itertools import count
from typing import TYPE_CHECKING

import click

from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import Bytes, progress_bar, show
from bookie_admin.bkadmin.options import Cluster, bookie_ids, with_cluster, with_output
from bookie_admin.bookie_calls import ask

if TYPE_CHECKING:
    from bookie.metadata.driver import MetadataDriver
    from bookie.repair.integrity import IntegrityReport


@click.command()
@click.argument("bookie", shell_complete=bookie_ids)
@click.option("-q", "--query", is_flag=True, help="Only count what is missing, and copy nothing.")
@with_cluster
@with_output
@click.pass_context
def command(context: click.Context, /, *, bookie: str, query: bool, cluster: Cluster, output: str) -> None:
    """Copy to the running BOOKIE (its id) the entries that it lacks of its ledgers from the other replicas, after
    `bkadmin replacedisk`, or before its quarantine of a ledger is lifted.

    A ledger that no other replica can complete is listed with the reason: run the command again when those bookies are
    back. Ledgers under `limbo` are not closed and may lack entries: after they were closed, by a client that opens them
    with recovery, run the command again, and then `bkadmin clearlimbo`. The exit code is 3 while anything is missing.
    """
    with cluster.open() as driver:
        report = _check(driver, bookie, cluster, copy=not query)
    rows = [
        {
            "ledger": one.ledger,
            "state": one.state,
            "missing": one.missing,
            "copied": one.copied,
            "lost": list(one.lost),
            "problem": one.problem or None,
        }
        for one in report.incomplete
    ]
    show(
        output, "incomplete", rows, bookie=bookie, ledgers=report.ledgers, entries=report.expected,
        missing=report.missing, copied=report.copied, bytes=Bytes(report.bytes), limbo=list(report.untrusted),
        unreachable=report.unreachable,
    )  # fmt: skip
    if not report.whole or report.untrusted:
        context.exit(EXIT_PARTIAL)


def _check(driver: "MetadataDriver", bookie: str, cluster: Cluster, *, copy: bool) -> "IntegrityReport":
    from bookie.repair.integrity import check_bookie  # noqa: PLC0415
    from bookie.repair.peers import connect_by_metadata  # noqa: PLC0415

    done, security = count(1), cluster.security
    with progress_bar("ledgers") as progress:
        return ask(
            driver, bookie, cluster.timeout_s,
            lambda channel: check_bookie(
                bookie, driver.ledgers, lister=channel, target=channel if copy else None,
                connect=connect_by_metadata(driver, security), on_ledger=lambda _: progress(next(done), None),
            ),
            security,
        )  # fmt: skip
