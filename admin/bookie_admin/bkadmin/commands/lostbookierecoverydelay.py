"""`bkadmin lostbookierecoverydelay`: show or set how long a bookie may be down before re-replication."""

import click

from bookie.terminal.output import done
from bookie_admin.bkadmin.options import COUNT, Cluster, with_cluster, with_output


@click.command()
@click.option("-g", "--get", "_always", is_flag=True, help="Accepted for compatibility; the delay is always shown.")
@click.option("-s", "--set", "seconds", type=COUNT, metavar="SECONDS", help="Set the delay; 0: re-replicate at once.")
@with_cluster
@with_output
def command(*, _always: bool, seconds: int | None, cluster: Cluster, output: str) -> None:
    """Show or set how long a bookie may be down before its ledgers are re-replicated.

    Setting the value that is already set triggers an audit.
    """
    with cluster.open() as driver:
        if seconds is not None:
            driver.replication.set_lost_bookie_delay_s(seconds)
        delay_s = driver.replication.lost_bookie_delay_s()
    done(output, "no delay is set" if delay_s is None else f"{delay_s} s", delay_s=delay_s)
