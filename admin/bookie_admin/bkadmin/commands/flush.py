"""`bkadmin flush`: flush the write caches to disk now."""

import click

from bookie.terminal.output import show
from bookie_admin.bkadmin.admin_port import AdminPort, with_admin
from bookie_admin.bkadmin.commands.lastmark import rows_of
from bookie_admin.bkadmin.options import with_output


@click.command()
@with_admin
@with_output
def command(*, admin: AdminPort, output: str) -> None:
    """Flush the write caches of a running bookie to entry logs and index, so that its next start has less to replay."""
    from bookie.pb import bookie_service_pb2 as pb  # noqa: PLC0415
    from bookie.pb.bookie_service_pb2_grpc import BookieStub  # noqa: PLC0415

    with admin.open() as port:
        stub = port.stub(BookieStub)
        show(output, "marks", rows_of(port.call(stub.Flush, pb.FlushRequest())))
