"""`bkadmin loglevel`: show the log levels, or set one until the next restart."""

import click

from bookie.terminal.output import show
from bookie_admin.bkadmin.admin_port import AdminPort, with_admin
from bookie_admin.bkadmin.options import with_output


@click.command()
@click.argument("level", type=click.Choice(("debug", "info", "warning", "error", "inherit")), required=False)
@click.argument("logger", default="")
@with_admin
@with_output
def command(*, level: str | None, logger: str, admin: AdminPort, output: str) -> None:
    """Show the log levels of a running bookie, or set the level of LOGGER until the bookie restarts.

    LOGGER is a module as log lines name it, for example `bookie.storage.garbage`; without it, the level of all loggers
    is set. `inherit` makes a logger use the level of its parent again.
    """
    from bookie.pb import bookie_service_pb2 as pb  # noqa: PLC0415
    from bookie.pb.bookie_service_pb2_grpc import BookieStub  # noqa: PLC0415

    with admin.open() as port:
        stub = port.stub(BookieStub)
        if level is None:
            found = port.call(stub.GetLogLevels, pb.GetLogLevelsRequest())
        else:
            level = "" if level == "inherit" else level
            found = port.call(stub.SetLogLevel, pb.SetLogLevelRequest(logger=logger, level=level))
    rows = [{"logger": name or "(all)", "level": one} for name, one in sorted(found.levels.items())]
    show(output, "levels", rows)
