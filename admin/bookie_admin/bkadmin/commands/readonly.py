"""`bkadmin readonly`: show read-only mode, or switch it on or off."""

import click

from bookie.terminal.output import show
from bookie_admin.bkadmin.admin_port import AdminPort, with_admin
from bookie_admin.bkadmin.options import with_output


@click.command()
@click.argument("wish", type=click.Choice(("on", "off")), required=False)
@with_admin
@with_output
def command(*, wish: str | None, admin: AdminPort, output: str) -> None:
    """Show whether a running bookie is read-only and for what reasons, or switch read-only mode on or off.

    `off` only takes back an earlier `on`: a full disk and forceReadOnlyBookie still keep the bookie read-only.
    """
    from bookie.pb import bookie_service_pb2 as pb  # noqa: PLC0415
    from bookie.pb.bookie_service_pb2_grpc import BookieStub  # noqa: PLC0415

    with admin.open() as port:
        stub = port.stub(BookieStub)
        if wish is None:
            state = port.call(stub.GetInfo, pb.GetInfoRequest(without_metadata=True)).state
        else:
            state = port.call(stub.SetReadOnly, pb.SetReadOnlyRequest(read_only=wish == "on"))
    show(output, "", read_only=state.read_only, reasons=list(state.read_only_reasons), state=state.state)
