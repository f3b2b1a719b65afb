"""`bkadmin status`: show a bookie's identity and state; --watch follows changes."""

from typing import TYPE_CHECKING, Any

import click

from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import Bytes, Moment, show, show_again
from bookie_admin.bkadmin.admin_port import AdminPort, with_admin
from bookie_admin.bkadmin.options import with_output

if TYPE_CHECKING:
    from bookie.pb import bookie_service_pb2 as pb

NOT_ASKED = "the bookie could not ask its metadata store for instance_id, features, endpoints and cookie"


@click.command()
@click.option("--watch", is_flag=True, help="Print every change until Ctrl-C.")
@with_admin
@with_output
@click.pass_context
def command(context: click.Context, /, *, watch: bool, admin: AdminPort, output: str) -> None:
    """Show the identity and state of a running bookie: mode, disks, version, endpoints and cookie.

    The last two, the instance id and the features are in the metadata store. If the bookie cannot ask it, the rest is
    shown, `problem` says why, and the exit code is 3.
    """
    from bookie.pb import bookie_service_pb2 as pb  # noqa: PLC0415
    from bookie.pb.bookie_service_pb2_grpc import BookieStub  # noqa: PLC0415

    with admin.open() as port:
        bookie = port.stub(BookieStub)
        if watch:
            request = pb.WatchStateRequest()
            port.watch(bookie.Watch, request, lambda now: show_again(output, "disks", disks(now), **facts(now)))
            return
        info = port.call(bookie.GetInfo, pb.GetInfoRequest())
    show(
        output,
        "disks",
        disks(info.state),
        bookie=info.bookie_id,
        **facts(info.state),
        instance_id=None if info.problem else info.instance_id,
        version=info.version,
        python=info.python,
        process=info.process,
        started_ms=Moment(info.started_ms),
        features=None if info.problem else list(info.features),
        endpoints=None if info.problem else [f"{one.protocol} {one.host}:{one.port}" for one in info.endpoints],
        cookie=None if info.problem else info.cookie.splitlines(),
        problem=info.problem or None,
    )
    if info.problem:
        click.echo(f"bkadmin: {NOT_ASKED}: {info.problem}", err=True)
        context.exit(EXIT_PARTIAL)


def facts(state: "pb.State") -> dict[str, Any]:
    """Return the mode and the reasons for being read-only."""
    return {"state": state.state, "read_only_reasons": list(state.read_only_reasons), "at_ms": Moment(state.at_ms)}


def disks(state: "pb.State") -> list[dict[str, Any]]:
    """Return a row for each directory."""
    return [
        {
            "kind": one.kind,
            "level": one.level,
            "free": Bytes(one.free_bytes),
            "total": Bytes(one.total_bytes),
            "path": one.path,
            "problem": one.problem or None,
        }
        for one in state.disks
    ]
