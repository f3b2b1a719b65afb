"""`bkadmin listbookies`: list bookies by state: writable, read-only or absent."""

from typing import TYPE_CHECKING

import click

from bookie.metadata.bookies.states import BookieState, bookie_states
from bookie.terminal.output import State, show
from bookie_admin.bkadmin.options import Cluster, with_cluster, with_output

if TYPE_CHECKING:
    from bookie.metadata.driver import MetadataDriver


@click.command()
@click.option("-rw", "--readwrite", is_flag=True, help="List only writable bookies.")
@click.option("-ro", "--readonly", is_flag=True, help="List only read-only bookies.")
@click.option("-a", "--all", "everyone", is_flag=True, help="List all bookies; the default.")
@with_cluster
@with_output
def command(*, readwrite: bool, readonly: bool, everyone: bool, cluster: Cluster, output: str) -> None:
    """List the bookies of the cluster by state.

    A bookie that has a cookie but is not registered is `absent`: it is down, or was removed without deleting its
    cookie. A bookie that was killed stays registered, as `writable`, until its session with the metadata store ends,
    some seconds later; `bkadmin health` asks each bookie whether it answers.
    """
    with cluster.open() as driver:
        states = bookie_states(driver.bookies)
        places = {one: _address(driver, one) for one, state in states.items() if state is not BookieState.ABSENT}
    chosen = {BookieState.WRITABLE: readwrite, BookieState.READ_ONLY: readonly}
    wanted = {state for state, is_chosen in chosen.items() if is_chosen and not everyone} or set(BookieState)
    rows = [
        {"bookie": one, "state": State(state.value), "address": places.get(one)}
        for one, state in states.items()
        if state in wanted
    ]
    show(output, "bookies", rows)


def _address(driver: "MetadataDriver", bookie: str) -> str | None:
    """Return the address of a bookie's data port, or None if it publishes none that can be read."""
    from bookie.metadata.bookies.service_info import readable_service_info  # noqa: PLC0415

    info = readable_service_info(bookie, driver.bookies.info(bookie))
    end = info.client_endpoint() if info else None
    return end.address if end else None
