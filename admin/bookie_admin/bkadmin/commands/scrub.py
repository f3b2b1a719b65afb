"""`bkadmin scrub`: control the scrub of entry logs: status, start, pause, resume, pace."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from bookie.terminal.output import Bytes, Moment, progress_bar, show, show_again
from bookie_admin.bkadmin.admin_port import AdminPort, Asking, with_admin
from bookie_admin.bkadmin.options import with_output

if TYPE_CHECKING:
    from bookie.pb import scrub_service_pb2 as pb

ORDERS = ("status", "start", "pause", "resume", "pace")


@click.command()
@click.argument("order", type=click.Choice(ORDERS), default="status")
@click.option(
    "--rate",
    type=click.IntRange(min=0),
    metavar="BYTES",
    help="For pace: maximum rate in bytes per second; 0: no limit.",
)
@click.option("--wait", is_flag=True, help="For start: wait until the pass has ended, and show its progress.")
@click.option("--watch", is_flag=True, help="For status: print every change until Ctrl-C.")
@click.option("--findings", is_flag=True, help="For status: show the last findings, one per row.")
@with_admin
@with_output
def command(
    *, order: str, rate: int | None, wait: bool, watch: bool, findings: bool, admin: AdminPort, output: str
) -> None:
    """Control the scrub of a running bookie.

    \b
    status   show progress, the end of the last pass, and what was found and repaired; the default
    start    start a pass over all entry logs now, or continue an interrupted one
    pause    stop reading until the scrub is resumed, or the bookie restarts
    resume   continue after a pause
    pace     read at most --rate bytes per second until the bookie restarts; scrubRateByBytes sets it permanently

    docs/scrub.md explains the kinds of findings and the cost of a pass.
    """
    from bookie.pb import scrub_service_pb2 as pb  # noqa: PLC0415
    from bookie.pb.scrub_service_pb2_grpc import ScrubStub  # noqa: PLC0415

    if (rate is not None) != (order == "pace"):
        raise click.UsageError("pace requires --rate, and no other action takes it: bkadmin scrub pace --rate 8388608")
    with admin.open() as port:
        stub = port.stub(ScrubStub)
        if order == "status" and watch:
            port.watch(stub.Watch, pb.WatchScrubRequest(), lambda status: show_again(output, "", **facts(status)))
            return
        calls: dict[str, Callable[[], Any]] = {
            "status": lambda: port.call(stub.GetStatus, pb.GetScrubStatusRequest()),
            "start": lambda: until_done(port, stub) if wait else port.call(stub.Start, pb.StartScrubRequest()),
            "pause": lambda: port.call(stub.Pause, pb.PauseScrubRequest()),
            "resume": lambda: port.call(stub.Resume, pb.ResumeScrubRequest()),
            "pace": lambda: port.call(stub.SetPace, pb.SetScrubPaceRequest(bytes_per_s=rate or 0)),
        }
        status = calls[order]()
    if findings:
        show(output, "findings", rows=map(row, status.findings))
    else:
        show(output, "", **facts(status))


def until_done(port: Asking, stub: Any) -> "pb.ScrubStatus":
    """Start a pass, wait until it has ended, and return the last status.

    Raises:
        BookKeeperError: the connection to the bookie was lost.
    """
    from bookie.pb import scrub_service_pb2 as pb  # noqa: PLC0415

    before = port.call(stub.GetStatus, pb.GetScrubStatusRequest()).counters["scrub_passes"]
    port.call(stub.Start, pb.StartScrubRequest())
    status = pb.ScrubStatus()
    with progress_bar("scrubbing") as progress:
        for status in port.stream(stub.Watch, pb.WatchScrubRequest(), endless=True):
            progress(status.bytes_done, max(status.bytes_in_all, 1))
            if status.counters["scrub_passes"] > before:
                break
    return status


def row(found: "pb.ScrubFinding") -> dict[str, Any]:
    """Return the row of one finding."""
    return {
        "kind": found.kind,
        "log": f"{found.log_id:x}.log" if found.log_id >= 0 else None,
        "ledger": found.ledger if found.ledger >= 0 else None,
        "entry": found.entry if found.entry >= 0 else None,
        "offset": found.offset if found.offset >= 0 else None,
        "directory": found.directory,
        "why": found.why or None,
    }


def facts(status: "pb.ScrubStatus") -> dict[str, Any]:
    """Return the fields of a status in the order in which they are shown."""
    counted = {name: value for name, value in sorted(status.counters.items()) if not name.endswith(("_now", "_ms"))}
    return {
        "running": status.running,
        "paused": status.paused,
        "runs_by_itself": status.enabled,
        "rate_per_second": Bytes(status.rate),
        "pass": status.number,
        "log": status.log or None,
        "done": Bytes(status.bytes_done),
        "in_all": Bytes(status.bytes_in_all),
        "began_ms": Moment(status.began_ms),
        "last_pass_ended_ms": Moment(status.ended_ms),
        "last_pass_seconds": status.took_ms // 1000,
        "next_pass_ms": Moment(status.next_ms),
        "found": status.found,
        "counters": counted,
    }
