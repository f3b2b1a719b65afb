"""`bkadmin gc`: control garbage collection: status, force, suspend, resume."""

import sys
from typing import TYPE_CHECKING, Any

import click

from bookie.terminal.output import Moment, progress_bar, show, show_again
from bookie_admin.bkadmin.admin_port import AdminPort, Asking, with_admin
from bookie_admin.bkadmin.options import sure, with_dry_run, with_output, with_yes

if TYPE_CHECKING:
    from bookie.pb import garbage_service_pb2 as pb


@click.command()
@click.argument("order", type=click.Choice(("status", "force", "suspend", "resume")), default="status")
@click.option("--major", is_flag=True, help="For force, suspend, resume: apply to major compaction.")
@click.option("--minor", is_flag=True, help="Apply to minor compaction. Default: both kinds.")
@click.option("--mass-deletion", is_flag=True, help="For force: confirm the mass deletion that the alarm reports.")
@click.option("--wait", is_flag=True, help="For force: wait until the cycle has ended, and show its progress.")
@click.option("--watch", is_flag=True, help="For status: print every change until Ctrl-C.")
@with_yes
@with_dry_run
@with_admin
@with_output
def command(*, order: str, admin: AdminPort, output: str, yes: bool, dry_run: bool, **how: bool) -> None:
    """Control garbage collection of a running bookie.

    \b
    status   show what it is doing, and its counters; the default
    force    start a cycle now
    suspend  suspend compaction until it is resumed, or the bookie restarts
    resume   resume compaction
    """
    from bookie.pb import garbage_service_pb2 as pb  # noqa: PLC0415
    from bookie.pb.garbage_service_pb2_grpc import GarbageCollectionStub  # noqa: PLC0415

    both = not (how["major"] or how["minor"])
    kinds = pb.CompactionKinds(major=how["major"] or both, minor=how["minor"] or both)
    if dry_run and not how["mass_deletion"]:
        raise click.UsageError("--dry-run requires --mass-deletion: no other option of this command deletes ledgers")
    question = "delete all ledgers of this bookie that the metadata store does not know, however many?"
    if how["mass_deletion"] and not sure(question, yes=yes, dry_run=dry_run, output=output):
        return
    with admin.open() as port:
        stub = port.stub(GarbageCollectionStub)
        if order == "status" and how["watch"]:
            port.watch(stub.Watch, pb.WatchGarbageRequest(), lambda status: show_again(output, "", **facts(status)))
            return
        if order == "force":
            wanted = pb.ForceGarbageRequest(major=kinds.major, minor=kinds.minor, mass_deletion=how["mass_deletion"])
            status = port.call(stub.Force, wanted)
            if how["wait"]:
                status = until_done(port, stub)
        elif order == "status":
            status = port.call(stub.GetStatus, pb.GetGarbageStatusRequest())
        else:
            status = port.call(stub.Suspend if order == "suspend" else stub.Resume, kinds)
    show(output, "", **facts(status))


def until_done(port: Asking, stub: Any) -> "pb.GarbageStatus":
    """Wait until the forced cycle has ended, show its progress, and return the last status.

    Raises:
        BookKeeperError: the connection to the bookie was lost.
    """
    from bookie.pb import garbage_service_pb2 as pb  # noqa: PLC0415

    status = pb.GarbageStatus()
    said = ""
    with progress_bar("collecting") as progress:
        for status in port.stream(stub.Watch, pb.WatchGarbageRequest(), endless=True):
            work = status.progress
            progress(work.logs_done, max(work.logs_in_all, 1))
            if status.doing and status.doing != said and not sys.stderr.isatty():
                click.echo(status.doing, err=True)
            said = status.doing
            if not status.forced:
                break
    return status


def facts(status: "pb.GarbageStatus") -> dict[str, Any]:
    """Return the fields of a status in the order in which they are shown."""
    work = status.progress
    return {
        "running": status.running,
        "doing": status.doing or None,
        "compacting": status.compacting or None,
        "forced": status.forced,
        "major_suspended": status.major_suspended,
        "minor_suspended": status.minor_suspended,
        "disks": list(status.disks),
        "last_cycle_ms": Moment(status.last_cycle_ms),
        "last_minor_ms": Moment(status.last_minor_ms),
        "last_major_ms": Moment(status.last_major_ms),
        "alarm": status.alarm or None,
        "logs_done": work.logs_done,
        "logs_in_all": work.logs_in_all,
        "log": f"{work.log_id:x}" if work.log_id >= 0 else None,
        "counters": dict(sorted(status.counters.items())),
    }
