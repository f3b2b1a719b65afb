"""The gRPC service for the running bookie: its identity, state and configuration, and actions of operators. See
bookie_service.proto.
"""

import difflib
import logging
import os
import platform
import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc

from bookie import __version__
from bookie.errors import BookKeeperError, IllegalOperation, IncorrectParameter, NoSuchLedger
from bookie.metadata.bookies.service_info import parse_service_info
from bookie.pb import bookie_service_pb2 as pb
from bookie.pb.bookie_service_pb2_grpc import add_BookieServicer_to_server
from bookie.server.configuration.errors import one_line
from bookie.server.control import FLUSH_WAIT_S, MODE_WAIT_S, Control
from bookie_admin.sanity import sanity
from bookie_admin.services.streaming import changes
from bookie_admin.store_calls import WHOLE_SHARE, briefly, share_of

__all__ = ["RunningService"]

WRITE_CLOSES_MAX = 10_000
QUARANTINED_MAX = 10_000
SANITY_S = 30.0
LEVELS = ("debug", "info", "warning", "error")


class RunningService:
    """Implements the methods of bookie.admin.v1.Bookie."""

    NAME = "bookie.admin.v1.Bookie"

    def __init__(self, control: Control) -> None:
        self._control = control
        self._started_ms = time.time_ns() // 1_000_000
        self._ended = threading.Event()

    def add_to(self, server: grpc.Server) -> None:
        """Register the service with a server."""
        add_BookieServicer_to_server(self, server)  # type: ignore[no-untyped-call]  # generated

    def close(self) -> None:
        """End all streams. Idempotent."""
        self._ended.set()

    # The names and arguments of the following methods are those of the service.

    def GetInfo(self, request: pb.GetInfoRequest, context: grpc.ServicerContext) -> pb.Info:  # noqa: N802
        answer = pb.Info(
            bookie_id=self._control.bookie_id,
            version=__version__,
            python=platform.python_version(),
            started_ms=self._started_ms,
            process=os.getpid(),
            state=self._state(),
        )
        if not request.without_metadata:
            try:
                with briefly(context):
                    answer.MergeFrom(self._published())
            except BookKeeperError as error:
                answer.problem = one_line(error)
        return answer

    def _published(self) -> pb.Info:
        """Return what the metadata store has of this bookie."""
        driver, bookie = self._control.metadata, self._control.bookie_id
        cookie = driver.cookies.read(bookie)
        published = driver.bookies.info(bookie)
        info = None if published is None else parse_service_info(bookie, published)
        return pb.Info(
            instance_id=driver.cluster.instance_id() or "",
            cookie="" if cookie is None else cookie[0].decode("utf-8", "replace"),
            features=sorted(info.v3_extensions()) if info else (),
            endpoints=[
                pb.Endpoint(id=end.id, protocol=end.protocol, host=end.host, port=end.port)
                for end in (info.endpoints if info else ())
            ],
        )

    def GetConfiguration(  # noqa: N802
        self, _request: pb.GetConfigurationRequest, _context: grpc.ServicerContext
    ) -> pb.Configuration:
        return pb.Configuration(keys=self._control.configuration())

    def GetLastMarks(  # noqa: N802
        self, _request: pb.GetLastMarksRequest, _context: grpc.ServicerContext
    ) -> pb.LastMarks:
        return self._marks()

    def Watch(  # noqa: N802
        self, _request: pb.WatchStateRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.State]:
        def look() -> tuple[tuple[object, ...], pb.State]:
            now = self._state()
            levels = tuple((disk.path, disk.level, disk.problem) for disk in now.disks)
            return (now.state, now.read_only, *now.read_only_reasons, levels), now

        return changes(look, context, self._ended)

    def SetReadOnly(  # noqa: N802
        self, request: pb.SetReadOnlyRequest, context: grpc.ServicerContext
    ) -> pb.State:
        self._control.set_read_only(read_only=request.read_only, within_s=share_of(context, MODE_WAIT_S))
        return self._state()

    def Flush(self, _request: pb.FlushRequest, context: grpc.ServicerContext) -> pb.LastMarks:  # noqa: N802
        self._control.checkpoint(share_of(context, FLUSH_WAIT_S, WHOLE_SHARE))
        return self._marks()

    def WriteClose(  # noqa: N802
        self, request: pb.WriteCloseLedgersRequest, context: grpc.ServicerContext
    ) -> pb.WriteCloseLedgersReply:
        if not 0 < len(request.ledgers) <= WRITE_CLOSES_MAX:
            raise IncorrectParameter(f"the request names {len(request.ledgers)} ledgers; name 1 to {WRITE_CLOSES_MAX}")
        reply = pb.WriteCloseLedgersReply()
        for ledger in request.ledgers:
            if not context.is_active():  # each ledger may wait for the metadata store, as long as that takes to fail
                done = len(reply.ledgers)
                raise IllegalOperation(f"the call ended after {done} of {len(request.ledgers)} ledgers")
            with briefly(context):
                reply.ledgers.append(self._write_close(ledger))
        return reply

    def GetQuarantine(  # noqa: N802
        self, _request: pb.GetQuarantineRequest, _context: grpc.ServicerContext
    ) -> pb.Quarantine:
        return self._quarantine()

    def LiftQuarantine(  # noqa: N802
        self, request: pb.LiftQuarantineRequest, _context: grpc.ServicerContext
    ) -> pb.Quarantine:
        if not self._control.stored.lift(request.ledger):
            raise NoSuchLedger(
                f"ledger {request.ledger} is not in quarantine on this bookie; bkadmin quarantine lists those that are"
            )
        return self._quarantine()

    def _quarantine(self) -> pb.Quarantine:
        found = sorted(self._control.stored.quarantined())
        where = self._control.stored.directory_of
        ledgers = (
            pb.QuarantinedLedger(ledger=ledger, directory=where(ledger), reasons=reasons)
            for ledger, reasons in found[:QUARANTINED_MAX]
        )
        return pb.Quarantine(ledgers=ledgers, count=len(found))

    def RunSanityTest(  # noqa: N802
        self, _request: pb.RunSanityTestRequest, context: grpc.ServicerContext
    ) -> pb.SanityTest:
        if self._control.read_only:
            return pb.SanityTest(read_only=True, problem="the bookie is read-only, so the test was skipped")
        left = context.time_remaining()
        problem = sanity(self._control, SANITY_S if left is None else min(left, SANITY_S))
        return pb.SanityTest(passed=not problem, problem=problem)

    def GetLogLevels(  # noqa: N802
        self, _request: pb.GetLogLevelsRequest, _context: grpc.ServicerContext
    ) -> pb.LogLevels:
        return _levels()

    def SetLogLevel(  # noqa: N802
        self, request: pb.SetLogLevelRequest, _context: grpc.ServicerContext
    ) -> pb.LogLevels:
        known = sorted(logging.root.manager.loggerDict)
        if request.logger and request.logger not in known:
            near = difflib.get_close_matches(request.logger, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "name a module as the log shows it"
            raise IncorrectParameter(f"unknown logger {request.logger!r}: {hint}")
        if request.level.lower() not in (*LEVELS, *(("",) if request.logger else ())):
            raise IncorrectParameter(f"unknown level {request.level!r}: use one of {', '.join(LEVELS)}")
        logging.getLogger(request.logger or None).setLevel(request.level.upper() or logging.NOTSET)
        return _levels()

    def _state(self) -> pb.State:
        return pb.State(
            state=self._control.state,
            read_only=self._control.read_only,
            read_only_reasons=sorted(self._control.read_only_reasons),
            disks=[_disk(one) for one in self._control.disk_state().directories],
            at_ms=time.time_ns() // 1_000_000,
        )

    def _marks(self) -> pb.LastMarks:
        marks = (
            pb.LastMark(
                journal=mark.journal,
                file_id=-1 if mark.file_id is None else mark.file_id,
                offset=mark.offset or 0,
                path=str(mark.path),
                counts=mark.counts,
            )
            for mark in self._control.last_marks()
        )
        return pb.LastMarks(marks=marks)

    def _write_close(self, ledger: int) -> pb.WriteClosed:
        from bookie.client.entries.digest import master_key  # noqa: PLC0415  # importing the client would slow down every start

        try:
            password = self._control.metadata.ledgers.read(ledger).value.password
            self._control.stored.write_close(ledger, master_key(password))
        except BookKeeperError as error:
            return pb.WriteClosed(ledger=ledger, problem=one_line(error))
        return pb.WriteClosed(ledger=ledger, announced=True)


def _disk(one: Any) -> pb.Disk:
    found = pb.Disk(kind=one.kind, path=str(one.path), level=one.level.name.lower(), problem=one.problem)
    if one.usage is not None:
        found.total_bytes, found.free_bytes = one.usage.total, one.usage.usable
    return found


def _levels() -> pb.LogLevels:
    """Return the level of the root logger, and of all loggers that have a level of their own."""
    own = {
        name: logging.getLevelName(logger.level).lower()
        for name, logger in logging.root.manager.loggerDict.items()
        if isinstance(logger, logging.Logger) and logger.level
    }
    return pb.LogLevels(levels={"": logging.getLevelName(logging.root.level).lower(), **own})
