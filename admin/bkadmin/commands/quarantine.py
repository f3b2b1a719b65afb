"""`bkadmin quarantine`."""

import click

from admin.bkadmin.admin_port import AdminPort, with_admin
from admin.bkadmin.options import ID, with_output
from bookie.terminal.output import show


@click.command()
@click.argument("order", type=click.Choice(("list", "lift")), default="list")
@click.argument("ledger", type=ID, required=False)
@with_admin
@with_output
def command(*, order: str, ledger: int | None, admin: AdminPort, output: str) -> None:
    """The ledgers in quarantine on a running bookie; let one out.

    \b
    list         which, in which ledger directory, and what they have that could not be stored or trusted
    lift LEDGER  from now on what is stored of it is all there is, and it is written to; after a repair only

    What quarantine means, and how to mend such a ledger from its replicas: docs/troubleshoot.md.
    """
    from bookie.pb import bookie_service_pb2 as pb  # noqa: PLC0415
    from bookie.pb.bookie_service_pb2_grpc import BookieStub  # noqa: PLC0415

    if (ledger is not None) != (order == "lift"):
        raise click.UsageError("lift and a ledger go together: bkadmin quarantine lift 4711")
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
