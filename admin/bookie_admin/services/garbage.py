"""The gRPC service for garbage collection of one bookie. Runs on the threads of its server."""

import threading
from collections.abc import Iterator
from typing import Any

import grpc

from bookie.errors import IllegalOperation, IncorrectParameter
from bookie.pb import garbage_service_pb2 as pb
from bookie.pb.garbage_service_pb2_grpc import add_GarbageCollectionServicer_to_server
from bookie.server.control import Control
from bookie_admin.services.streaming import changes

__all__ = ["GarbageService"]


class GarbageService:
    """Implements the methods of bookie.admin.v1.GarbageCollection."""

    NAME = "bookie.admin.v1.GarbageCollection"

    def __init__(self, control: Control) -> None:
        self._control = control
        self._ended = threading.Event()

    def add_to(self, server: grpc.Server) -> None:
        """Register the service with a server."""
        add_GarbageCollectionServicer_to_server(self, server)  # type: ignore[no-untyped-call]  # generated

    def close(self) -> None:
        """End all streams. Idempotent."""
        self._ended.set()

    def GetStatus(  # noqa: N802  # the names of gRPC
        self,
        _request: pb.GetGarbageStatusRequest,
        _context: grpc.ServicerContext,
    ) -> pb.GarbageStatus:
        return _status(self._garbage())

    def Watch(  # noqa: N802
        self, _request: pb.WatchGarbageRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.GarbageStatus]:
        garbage = self._garbage()

        def look() -> tuple[bytes, pb.GarbageStatus]:
            now = _status(garbage)
            return now.SerializeToString(deterministic=True), now

        return changes(look, context, self._ended)

    def Force(  # noqa: N802
        self, request: pb.ForceGarbageRequest, _context: grpc.ServicerContext
    ) -> pb.GarbageStatus:
        garbage = self._garbage()
        garbage.force(major=request.major, minor=request.minor, mass_deletion=request.mass_deletion)
        return _status(garbage)

    def Suspend(  # noqa: N802
        self, request: pb.CompactionKinds, _context: grpc.ServicerContext
    ) -> pb.GarbageStatus:
        garbage = self._garbage()
        garbage.suspend(**_kinds(request))
        return _status(garbage)

    def Resume(  # noqa: N802
        self, request: pb.CompactionKinds, _context: grpc.ServicerContext
    ) -> pb.GarbageStatus:
        garbage = self._garbage()
        garbage.resume(**_kinds(request))
        return _status(garbage)

    def _garbage(self) -> Any:
        garbage = self._control.garbage
        if garbage is None:
            raise IllegalOperation("this bookie is still starting; retry when it is running")
        return garbage


def _kinds(request: pb.CompactionKinds) -> dict[str, bool]:
    if not request.major and not request.minor:
        raise IncorrectParameter("no kind of compaction is named: set major, minor, or both")
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
