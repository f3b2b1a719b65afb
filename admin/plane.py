"""The admin plane: one gRPC server on `adminPort`, started with the bookie through the group `bookie.planes`.

gRPC's own threads and a pool of ours; no bytes of entries pass here but those that an operator reads. Every call goes
through the gatekeeper: roles, limits, audit. The standard health service and reflection are always there.
"""

from typing import Protocol

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from admin.access import Access
from admin.gatekeeper import Gatekeeper, WorkPool
from admin.services.garbage import GarbageService
from admin.services.metadata_store import STREAMS_MAX as CHANGE_STREAMS_MAX
from admin.services.metadata_store import MetadataService
from admin.services.metrics import MetricsService
from admin.services.running import RunningService
from admin.services.scrub import ScrubService
from admin.services.stored import StoredService
from admin.tls import server_credentials
from bookie.errors import StartRefused
from bookie.metadata.embedded import EmbeddedStore
from bookie.server.control import Control

__all__ = ["AdminPlane", "open_plane"]

CALL_THREADS = 8
STREAMS_MAX = 32
THREADS = CALL_THREADS + STREAMS_MAX + CHANGE_STREAMS_MAX
"""An open stream holds one: those of operators, those of the metadata store and calls do not wait for each other."""
WAITING_MAX = 256
CALLS_MAX = 2 * (WAITING_MAX + THREADS)
"""Beyond what waits there are refusals on their way; gRPC answers the rest by itself."""
OPTIONS = (
    ("grpc.so_reuseport", 0),  # two processes on one port would each get a part of the calls
    ("grpc.max_concurrent_streams", WAITING_MAX),  # of one connection
    ("grpc.keepalive_time_ms", 30_000),  # a client that is gone holds its streams no longer than this
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),  # else a minute, and the longer of them counts
    ("grpc.http2.min_ping_interval_without_data_ms", 1_000),  # and one that watches may ask us as often
)


class AdminService(Protocol):
    """What stands in `admin.services`."""

    NAME: str

    def add_to(self, server: grpc.Server) -> None: ...
    def close(self) -> None: ...


class AdminPlane:
    """Services of this bookie; and its metadata store for other processes, where that is embedded."""

    def __init__(self, control: Control) -> None:
        self._host = control.admin_host
        self._port = control.admin_port
        self._settings = control.access
        self._pool = WorkPool(THREADS)
        self._gatekeeper = Gatekeeper(
            Access(control.access), self._pool, waiting_max=WAITING_MAX, streams_max=STREAMS_MAX
        )
        store = getattr(control.metadata, "store", None)
        self._services: list[AdminService] = [
            RunningService(control),
            GarbageService(control),
            ScrubService(control),
            MetricsService(control),
            StoredService(control),
            *([MetadataService(store)] if isinstance(store, EmbeddedStore) else []),
        ]
        self._health = health.HealthServicer(experimental_non_blocking=False)
        self._server: grpc.Server | None = None

    def check(self) -> None:
        """Read its files; those of tokens were by the constructor. ConfigurationError."""
        if self._settings.tls_certificate:
            server_credentials(self._settings)

    def start(self) -> tuple[str, int]:
        """Bind and serve; the bound address. Raises StartRefused."""
        server = grpc.server(
            self._pool, options=OPTIONS, interceptors=(self._gatekeeper,), maximum_concurrent_rpcs=CALLS_MAX
        )
        for service in self._services:
            service.add_to(server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        names = [service.NAME for service in self._services]
        reflection.enable_server_reflection([*names, health.SERVICE_NAME, reflection.SERVICE_NAME], server)
        where = f"{self._host}:{self._port}"
        try:
            if self._settings.tls_certificate:
                port = server.add_secure_port(where, server_credentials(self._settings))
            else:
                port = server.add_insecure_port(where)
        except RuntimeError as error:
            raise StartRefused(
                f"adminPort={self._port}: cannot listen on {where}; set another port or adminHost"
            ) from error
        self._server = server
        server.start()
        for name in ("", *names):
            self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        return self._host, port

    def stop(self, grace_s: float) -> None:
        """End streams, let calls finish within `grace_s`, close; idempotent."""
        self._health.enter_graceful_shutdown()
        for service in self._services:
            service.close()
        if self._server is not None:
            self._server.stop(grace_s).wait()
            self._server = None
        self._pool.shutdown()
        self._gatekeeper.close()


def open_plane(control: Control) -> AdminPlane | None:
    """The plane of this bookie; None where adminPort is -1."""
    return AdminPlane(control) if control.admin_port >= 0 else None
