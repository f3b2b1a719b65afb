"""`bkadmin listbookies`."""

import click

from admin.bkadmin.options import Cluster, with_cluster, with_output
from bookie.terminal.output import show


@click.command()
@click.option("-rw", "--readwrite", is_flag=True, help="Only those that take writes.")
@click.option("-ro", "--readonly", is_flag=True, help="Only those that are read-only.")
@with_cluster
@with_output
def command(*, readwrite: bool, readonly: bool, cluster: Cluster, output: str) -> None:
    """List the bookies of the cluster by state.

    A bookie without registration that has a cookie is `absent`: it is down, or was removed without its cookie.
    """
    with cluster.open() as driver:
        found = dict.fromkeys(driver.bookies.present(read_only=False), "writable")
        found |= dict.fromkeys(driver.bookies.present(read_only=True), "read-only")
        found = dict.fromkeys(driver.bookies.known(), "absent") | found
    wanted = {state for state, chosen in (("writable", readwrite), ("read-only", readonly)) if chosen}
    rows = [{"bookie": one, "state": found[one]} for one in sorted(found) if not wanted or found[one] in wanted]
    show(output, "bookies", rows)
