"""The gRPC service for metrics, as text, as samples, and as a stream. See metrics_service.proto."""

import threading
import time
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

import grpc

from bookie.errors import IncorrectParameter
from bookie.metrics.family import Family
from bookie.metrics.text import write
from bookie.pb import metrics_service_pb2 as pb
from bookie.pb.metrics_service_pb2_grpc import add_MetricsServicer_to_server
from bookie.server.control import Control

__all__ = ["MetricsService"]

INTERVAL_MS_MIN, INTERVAL_MS_MAX = 100, 3_600_000


class MetricsService:
    """Implements the methods of bookie.admin.v1.Metrics."""

    NAME = "bookie.admin.v1.Metrics"

    def __init__(self, control: Control) -> None:
        self._control = control
        self._ended = threading.Event()

    def add_to(self, server: grpc.Server) -> None:
        """Register the service with a server."""
        add_MetricsServicer_to_server(self, server)  # type: ignore[no-untyped-call]  # generated

    def close(self) -> None:
        """End all streams. Idempotent."""
        self._ended.set()

    # The names and arguments of the following methods are those of the service.

    def GetText(self, request: pb.GetMetricsRequest, _context: grpc.ServicerContext) -> pb.MetricsText:  # noqa: N802
        return pb.MetricsText(text=write(self._families(request.names)).decode())

    def GetSamples(  # noqa: N802
        self, request: pb.GetMetricsRequest, _context: grpc.ServicerContext
    ) -> pb.MetricsSamples:
        return _samples(self._families(request.names))

    def Watch(  # noqa: N802
        self, request: pb.WatchMetricsRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.MetricsSamples]:
        if not INTERVAL_MS_MIN <= request.interval_ms <= INTERVAL_MS_MAX:
            limits = f"{INTERVAL_MS_MIN} to {INTERVAL_MS_MAX} ms"
            raise IncorrectParameter(f"interval_ms={request.interval_ms} is out of range; use {limits}")
        due = time.monotonic()
        while context.is_active() and not self._ended.is_set():
            yield _samples(self._families(request.names))
            due = max(due + request.interval_ms / 1000, time.monotonic())
            while not self._ended.wait(
                min(1.0, max(due - time.monotonic(), 0))
            ):  # notice within a second that the caller has gone
                if time.monotonic() >= due or not context.is_active():
                    break

    def _families(self, names: Sequence[str]) -> Iterator[Family]:
        for family in self._control.metrics():
            if not names or any(fnmatchcase(family.name, name) for name in names):
                yield family


def _samples(families: Iterator[Family]) -> pb.MetricsSamples:
    return pb.MetricsSamples(
        at_ms=time.time_ns() // 1_000_000,
        families=[
            pb.MetricFamily(
                name=family.name,
                type=str(family.kind),
                help=family.help,
                samples=[
                    pb.MetricSample(name=family.name + one.suffix, labels=dict(one.labels), value=one.value)
                    for one in family.samples
                ],
            )
            for family in families
        ],
    )
