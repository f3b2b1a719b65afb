"""`bkadmin listbookies`: list bookies by state: writable, read-only or absent."""

import click

from bookie.metadata.bookies.states import BookieState, bookie_states
from bookie.terminal.output import show
from bookie_admin.bkadmin.options import Cluster, with_cluster, with_output


@click.command()
@click.option("-rw", "--readwrite", is_flag=True, help="List only writable bookies.")
@click.option("-ro", "--readonly", is_flag=True, help="List only read-only bookies.")
@click.option("-a", "--all", "everyone", is_flag=True, help="List all bookies; the default.")
@with_cluster
@with_output
def command(*, readwrite: bool, readonly: bool, everyone: bool, cluster: Cluster, output: str) -> None:
    """List the bookies of the cluster by state.

    A bookie that has a cookie but is not registered is `absent`: it is down, or was removed without deleting its
    cookie.
    """
    with cluster.open() as driver:
        states = bookie_states(driver.bookies)
    chosen = {BookieState.WRITABLE: readwrite, BookieState.READ_ONLY: readonly}
    wanted = {state for state, is_chosen in chosen.items() if is_chosen and not everyone} or set(BookieState)
    rows = [{"bookie": one, "state": state.value} for one, state in states.items() if state in wanted]
    show(output, "bookies", rows)
