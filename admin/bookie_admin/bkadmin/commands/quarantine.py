"""`bkadmin quarantine`: list the ledgers in quarantine, or release one."""

import click

from bookie.terminal.output import show
from bookie_admin.bkadmin.admin_port import AdminPort, with_admin
from bookie_admin.bkadmin.options import ID, with_output


@click.command()
@click.argument("order", type=click.Choice(("list", "lift")), default="list")
@click.argument("ledger", type=ID, required=False)
@with_admin
@with_output
def command(*, order: str, ledger: int | None, admin: AdminPort, output: str) -> None:
    """List the ledgers in quarantine on a running bookie, or release one.

    \b
    list         show each ledger, its ledger directory, and what could not be stored or trusted; the default
    lift LEDGER  release the ledger after a repair: it takes writes again, and what is stored counts as complete

    docs/troubleshoot.md says what quarantine means and how to repair such a ledger from its replicas.
    """
    from bookie.pb import bookie_service_pb2 as pb  # noqa: PLC0415
    from bookie.pb.bookie_service_pb2_grpc import BookieStub  # noqa: PLC0415

    if (ledger is not None) != (order == "lift"):
        raise click.UsageError("lift requires a LEDGER, and list takes none: bkadmin quarantine lift 4711")
    with admin.open() as port:
        stub = port.stub(BookieStub)
        if ledger is None:
            found = port.call(stub.GetQuarantine, pb.GetQuarantineRequest())
        else:
            found = port.call(stub.LiftQuarantine, pb.LiftQuarantineRequest(ledger=ledger))
    rows = [
        {"ledger": one.ledger, "directory": one.directory, "reasons": "; ".join(one.reasons)} for one in found.ledgers
    ]
    show(output, "ledgers", rows, count=found.count)
