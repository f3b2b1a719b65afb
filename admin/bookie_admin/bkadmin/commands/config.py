"""`bkadmin config`: show the configuration in effect, with secrets masked."""

from fnmatch import fnmatchcase

import click

from bookie.terminal.output import show
from bookie_admin.bkadmin.admin_port import AdminPort, with_admin
from bookie_admin.bkadmin.options import with_output


@click.command()
@click.argument("names", nargs=-1)
@with_admin
@with_output
def command(*, names: tuple[str, ...], admin: AdminPort, output: str) -> None:
    """Show the configuration that a running bookie uses, with secrets masked.

    NAMES are keys or patterns such as `journal*`; without them, all keys are shown.
    """
    from bookie.pb import bookie_service_pb2 as pb  # noqa: PLC0415
    from bookie.pb.bookie_service_pb2_grpc import BookieStub  # noqa: PLC0415

    with admin.open() as port:
        stub = port.stub(BookieStub)
        found = port.call(stub.GetConfiguration, pb.GetConfigurationRequest()).keys
    rows = [
        {"key": key, "value": value}
        for key, value in sorted(found.items())
        if not names or any(fnmatchcase(key, name) for name in names)
    ]
    show(output, "keys", rows)
