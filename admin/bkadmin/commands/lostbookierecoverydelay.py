"""`bkadmin lostbookierecoverydelay`."""

import click

from admin.bkadmin.options import COUNT, Cluster, with_cluster, with_output
from bookie.terminal.output import done


@click.command()
@click.option("-g", "--get", "_always", is_flag=True, help="Tell it; done in any case.")
@click.option("-s", "--set", "seconds", type=COUNT, metavar="SECONDS", help="0: act at once.")
@with_cluster
@with_output
def command(*, _always: bool, seconds: int | None, cluster: Cluster, output: str) -> None:
    """Tell, or set, how long a bookie may be away before its ledgers are copied.

    Setting the same value again asks for an audit.
    """
    with cluster.open() as driver:
        if seconds is not None:
            driver.replication.set_lost_bookie_delay_s(seconds)
        delay_s = driver.replication.lost_bookie_delay_s()
    done(output, "nothing is set" if delay_s is None else f"{delay_s} s", delay_s=delay_s)
