"""`bkadmin write-close`: announce to a ledger's bookies that it gets no more entries."""

from typing import TYPE_CHECKING, Any

import click

from bookie.errors import BookKeeperError
from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import show
from bookie_admin.bkadmin.admin_port import AdminPort, with_admin_port
from bookie_admin.bkadmin.options import ID, Cluster, with_cluster, with_output
from bookie_admin.bookie_calls import ask

if TYPE_CHECKING:
    from bookie.client.channel.v3 import ChannelV3
    from bookie.metadata.driver import MetadataDriver
    from bookie.metadata.records.ledger_metadata import LedgerMetadata


@click.command()
@click.argument("ledgers", type=ID, nargs=-1, required=True, metavar="LEDGER...")
@with_admin_port
@with_cluster
@with_output
@click.pass_context
def command(
    context: click.Context, *, ledgers: tuple[int, ...], admin: AdminPort, cluster: Cluster, output: str
) -> None:
    """Announce to every bookie of a LEDGER's last ensemble, or with --admin to one bookie, that the ledger gets no
    more entries.

    The announcement is advisory: a bookie with one entry log per ledger rotates that log at its next checkpoint, and
    the writer may still continue. Bookies that do not support the operation are skipped. The exit code is 3 when a
    bookie that does could not get the announcement.
    """
    rows: list[dict[str, Any]]
    if admin.given:
        one_port = admin.within(cluster.conf, cluster.timeout_s)
        rows = [{"ledger": one, "state": state} for one, state in announced_by(one_port, ledgers)]
    else:
        with cluster.open() as driver:
            found = {
                one: driver.ledgers.read(one).value for one in ledgers
            }  # read all metadata before the first announcement
            rows = [row for one, value in found.items() for row in everywhere(driver, one, value, cluster)]
    show(output, "bookies", rows)
    if any(row["state"].startswith("failed") for row in rows):
        context.exit(EXIT_PARTIAL)


def announced_by(admin: AdminPort, ledgers: tuple[int, ...]) -> list[tuple[int, str]]:
    """Announce the ends of ledgers to one bookie through its admin port; return the outcome for each ledger."""
    from bookie.pb import bookie_service_pb2 as pb  # noqa: PLC0415
    from bookie.pb.bookie_service_pb2_grpc import BookieStub  # noqa: PLC0415

    with admin.open() as port:
        stub = port.stub(BookieStub)
        reply = port.call(stub.WriteClose, pb.WriteCloseLedgersRequest(ledgers=ledgers))
    return [(one.ledger, "announced" if one.announced else f"failed: {one.problem}") for one in reply.ledgers]


def everywhere(
    driver: "MetadataDriver", ledger: int, value: "LedgerMetadata", cluster: Cluster
) -> list[dict[str, Any]]:
    """Announce the end of a ledger to each bookie of its last ensemble; return a row for each."""
    from bookie.client.entries.digest import master_key  # noqa: PLC0415

    key = master_key(value.password)
    return [
        {"ledger": ledger, "bookie": one, "state": announced_to(driver, one, ledger, key, cluster)}
        for one in value.segments[-1].bookies
    ]


def announced_to(driver: "MetadataDriver", bookie: str, ledger: int, key: bytes, cluster: Cluster) -> str:
    """Announce the end of a ledger to one bookie over the data port; return the outcome as a line."""
    from bookie.client.wire.extensions import WRITE_CLOSE  # noqa: PLC0415

    def question(channel: "ChannelV3") -> str:
        if WRITE_CLOSE not in channel.extensions:
            return "does not support write close"
        channel.write_close(ledger, key)
        return "announced"

    try:
        return ask(driver, bookie, cluster.timeout_s, question, cluster.security)
    except BookKeeperError as error:
        return f"failed: {error}"
