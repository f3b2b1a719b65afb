"""`bkadmin sanity`: make the bookie write a few entries, read them back and compare."""

import click

from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import show
from bookie_admin.bkadmin.admin_port import AdminPort, with_admin
from bookie_admin.bkadmin.options import with_output


@click.command()
@with_admin
@with_output
@click.pass_context
def command(context: click.Context, *, admin: AdminPort, output: str) -> None:
    """Make a running bookie write a few entries, read them back and compare. The exit code is 3 when that fails."""
    from bookie.pb import bookie_service_pb2 as pb  # noqa: PLC0415
    from bookie.pb.bookie_service_pb2_grpc import BookieStub  # noqa: PLC0415

    with admin.open() as port:
        stub = port.stub(BookieStub)
        found = port.call(stub.RunSanityTest, pb.RunSanityTestRequest())
    show(output, "", passed=found.passed, read_only=found.read_only, problem=found.problem or None)
    if not found.passed:
        context.exit(EXIT_PARTIAL)
