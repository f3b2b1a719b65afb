"""Garbage collection over gRPC: status and orders of one bookie. Runs on the threads of the server it is added to."""

from typing import Any

import grpc

from bookie.pb import garbage_service_pb2 as pb
from bookie.pb.garbage_service_pb2_grpc import add_GarbageCollectionServicer_to_server
from bookie.server.control import Control

__all__ = ["GarbageService"]


class GarbageService:
    """The methods of bookie.admin.v1.GarbageCollection."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def add_to(self, server: grpc.Server) -> None:
        """Serve from this server."""
        add_GarbageCollectionServicer_to_server(self, server)  # type: ignore[no-untyped-call]  # generated

    def GetStatus(  # noqa: N802 - gRPC names methods so
        self,
        request: pb.GetGarbageStatusRequest,  # noqa: ARG002
        context: grpc.ServicerContext,
    ) -> pb.GarbageStatus:
        return _status(self._garbage(context))

    def Force(  # noqa: N802
        self, request: pb.ForceGarbageRequest, context: grpc.ServicerContext
    ) -> pb.GarbageStatus:
        garbage = self._garbage(context)
        garbage.force(major=request.major, minor=request.minor, mass_deletion=request.mass_deletion)
        return _status(garbage)

    def Suspend(  # noqa: N802
        self, request: pb.CompactionKinds, context: grpc.ServicerContext
    ) -> pb.GarbageStatus:
        garbage = self._garbage(context)
        garbage.suspend(**_kinds(request, context))
        return _status(garbage)

    def Resume(  # noqa: N802
        self, request: pb.CompactionKinds, context: grpc.ServicerContext
    ) -> pb.GarbageStatus:
        garbage = self._garbage(context)
        garbage.resume(**_kinds(request, context))
        return _status(garbage)

    def _garbage(self, context: grpc.ServicerContext) -> Any:
        garbage = self._control.garbage
        if garbage is None:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "this bookie is not started yet")
        return garbage


def _kinds(request: pb.CompactionKinds, context: grpc.ServicerContext) -> dict[str, bool]:
    if not request.major and not request.minor:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "name a kind of compaction: major, minor, or both")
    return {"major": request.major, "minor": request.minor}


def _status(garbage: Any) -> pb.GarbageStatus:
    found = garbage.status()
    work = found.progress
    return pb.GarbageStatus(
        running=found.running,
        doing=found.doing,
        compacting=found.compacting,
        forced=found.forced,
        major_suspended=found.major_suspended,
        minor_suspended=found.minor_suspended,
        disks=[disk.name.lower() for disk in found.disks],
        last_cycle_ms=found.last_cycle_ms,
        last_minor_ms=found.last_minor_ms,
        last_major_ms=found.last_major_ms,
        alarm=found.alarm.text if found.alarm else "",
        alarm_since_ms=found.alarm.since_ms if found.alarm else 0,
        progress=pb.Progress(
            logs_done=work.logs_done,
            logs_in_all=work.logs_in_all,
            log_id=work.log_id,
            bytes_done=work.bytes_done,
            bytes_in_log=work.bytes_in_log,
        ),
        counters=found.counters,
    )
