"""The gRPC service for the scrub of one bookie. Runs on the threads of its server."""

import threading
from collections.abc import Iterator
from typing import Any

import grpc

from bookie.errors import IllegalOperation, IncorrectParameter
from bookie.pb import scrub_service_pb2 as pb
from bookie.pb.scrub_service_pb2_grpc import add_ScrubServicer_to_server
from bookie.server.control import Control
from bookie_admin.services.streaming import changes

__all__ = ["ScrubService"]


class ScrubService:
    """Implements the methods of bookie.admin.v1.Scrub."""

    NAME = "bookie.admin.v1.Scrub"

    def __init__(self, control: Control) -> None:
        self._control = control
        self._ended = threading.Event()

    def add_to(self, server: grpc.Server) -> None:
        """Register the service with a server."""
        add_ScrubServicer_to_server(self, server)  # type: ignore[no-untyped-call]  # generated

    def close(self) -> None:
        """End all streams. Idempotent."""
        self._ended.set()

    def GetStatus(  # noqa: N802  # the names of gRPC
        self, _request: pb.GetScrubStatusRequest, _context: grpc.ServicerContext
    ) -> pb.ScrubStatus:
        return self._status()

    def Watch(  # noqa: N802
        self, _request: pb.WatchScrubRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.ScrubStatus]:
        self._scrub()

        def look() -> tuple[bytes, pb.ScrubStatus]:
            now = self._status()
            return now.SerializeToString(deterministic=True), now

        return changes(look, context, self._ended)

    def Start(self, _request: pb.StartScrubRequest, _context: grpc.ServicerContext) -> pb.ScrubStatus:  # noqa: N802
        self._scrub().begin()
        return self._status()

    def Pause(self, _request: pb.PauseScrubRequest, _context: grpc.ServicerContext) -> pb.ScrubStatus:  # noqa: N802
        self._scrub().pause(paused=True)
        return self._status()

    def Resume(self, _request: pb.ResumeScrubRequest, _context: grpc.ServicerContext) -> pb.ScrubStatus:  # noqa: N802
        self._scrub().pause(paused=False)
        return self._status()

    def SetPace(self, request: pb.SetScrubPaceRequest, _context: grpc.ServicerContext) -> pb.ScrubStatus:  # noqa: N802
        if request.bytes_per_s < 0:
            raise IncorrectParameter(
                f"bytes_per_s={request.bytes_per_s} is negative; use 0 for no limit, or a positive rate"
            )
        self._scrub().set_rate(request.bytes_per_s)
        return self._status()

    def _scrub(self) -> Any:
        scrub = self._control.scrub
        if scrub is None:
            raise IllegalOperation("this bookie is still starting; retry when it is running")
        return scrub

    def _status(self) -> pb.ScrubStatus:
        found = self._scrub().status()
        counters = {name: value for name, value in self._control.stats().items() if name.startswith(COUNTED)}
        return pb.ScrubStatus(
            enabled=found.enabled,
            running=found.running,
            paused=found.paused,
            rate=found.rate,
            number=found.number,
            log=found.log,
            bytes_done=found.bytes_done,
            bytes_in_all=found.bytes_in_all,
            began_ms=found.began_ms,
            ended_ms=found.ended_ms,
            took_ms=found.took_ms,
            next_ms=found.next_ms if not found.running else 0,
            found=found.found,
            findings=[
                pb.ScrubFinding(
                    kind=one.kind.value,
                    directory=one.directory,
                    log_id=one.log_id,
                    ledger=one.ledger,
                    entry=one.entry,
                    offset=one.offset,
                    why=one.why,
                )
                for one in found.findings
            ],
            counters=counters,
        )


COUNTED = ("scrub_", "repair_")
