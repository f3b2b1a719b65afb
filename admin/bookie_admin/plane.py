"""The admin plane: a gRPC server on `adminPort`, started with the bookie through the entry-point group
`bookie.planes`.

It runs on gRPC's own threads and a pool of this module. The only entry data that passes here is what an operator
reads. Every call passes the interceptor, which applies roles, limits and the audit log. The standard health service
and reflection are always available.
"""

from collections.abc import Mapping
from typing import Protocol

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from bookie.admin_port.own_token import Signpost
from bookie.errors import StartRefused
from bookie.metadata.key_value.embedded import EmbeddedStore, SessionLimits
from bookie.server.control import Control
from bookie_admin.access import Access
from bookie_admin.door import Limits
from bookie_admin.gateway import Gateway
from bookie_admin.interceptor import CallInterceptor, Share
from bookie_admin.services.garbage import GarbageService
from bookie_admin.services.metadata_store import STREAMS_MAX as CHANGE_STREAMS_MAX
from bookie_admin.services.metadata_store import MetadataService
from bookie_admin.services.metrics import MetricsService
from bookie_admin.services.running import RunningService
from bookie_admin.services.scrub import ScrubService
from bookie_admin.services.stored import StoredService
from bookie_admin.tls import server_credentials

__all__ = ["AdminPlane", "open_plane"]

CALL_THREADS = 8
STREAMS_MAX = 32
WAITING_MAX = 256
STRANGERS_THREADS = 2
STRANGERS_STREAMS_MAX = 8
STRANGERS_WAITING_MAX = 64
"""Limits for callers without a known token, such as probes of the health service and users of this machine who read
metrics.
"""
CALLS_MAX = 2 * (WAITING_MAX + CALL_THREADS + STREAMS_MAX + CHANGE_STREAMS_MAX)
"""The most calls of gRPC at a time. It leaves room for refusals, which take a moment; gRPC itself refuses further
calls.
"""
OPTIONS = (
    ("grpc.so_reuseport", 0),  # otherwise two processes could share the port, and each would receive some of the calls
    ("grpc.max_concurrent_streams", WAITING_MAX),  # per connection
    ("grpc.keepalive_time_ms", 30_000),  # the streams of a vanished client end after this time
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),  # its default is one minute, and gRPC applies the larger of the two
    ("grpc.http2.min_ping_interval_without_data_ms", 1_000),  # clients that watch a stream may ping as often
)


class AdminService(Protocol):
    """The interface of each service, one in each module of `bookie_admin.services`."""

    NAME: str

    def add_to(self, server: grpc.Server) -> None: ...
    def close(self) -> None: ...


class AdminPlane:
    """The gRPC services of this bookie, including its metadata store for other processes if that is embedded.

    `check`, `start` and `stop` are called by the bookie's main thread.
    """

    def __init__(self, control: Control) -> None:
        self._host = control.admin_host
        self._port = control.admin_port
        self._settings = control.access
        self._limits = control.admin
        self._gateway: Gateway | None = None
        self._known = Share(
            calls=CALL_THREADS, waiting_max=WAITING_MAX, streams_max=STREAMS_MAX, others=CHANGE_STREAMS_MAX
        )
        self._strangers = Share(
            calls=STRANGERS_THREADS, waiting_max=STRANGERS_WAITING_MAX, streams_max=STRANGERS_STREAMS_MAX
        )
        self._control = control
        self._interceptor: CallInterceptor | None = None
        self._signpost: Signpost | None = None
        sessions = SessionLimits(control.access.sessions_max, control.access.sessions_per_peer_max)
        store = getattr(control.metadata, "store", None)
        self._services: list[AdminService] = [
            RunningService(control),
            GarbageService(control),
            ScrubService(control),
            MetricsService(control),
            StoredService(control),
            *([MetadataService(store, limits=sessions)] if isinstance(store, EmbeddedStore) else []),
        ]
        self._health = health.HealthServicer(experimental_non_blocking=False)
        self._server: grpc.Server | None = None

    def check(self) -> None:
        """Read the files of tokens and of TLS.

        Raises:
            ConfigurationError: a file cannot be used.
        """
        Access(self._settings)
        if self._settings.tls_certificate:
            server_credentials(self._settings)

    def listen(self) -> None:
        """Do nothing: gRPC's health service is `SERVING` only while the whole port is open."""

    def start(self) -> tuple[str, int]:
        """Bind and serve; return the bound host and port.

        Raises:
            ConfigurationError: the tokens file cannot be used.
            StartRefused: the port cannot be bound.
        """
        own_token = self._control.own_token
        self._interceptor = CallInterceptor(Access(self._settings, own_token), self._known, self._strangers)
        limits = self._limits
        options = (
            *OPTIONS,
            ("grpc.server_handshake_timeout_ms", limits.handshake_timeout_ms),
            ("grpc.max_connection_idle_ms", limits.idle_timeout_ms),
        )
        server = grpc.server(
            self._known.pool, options=options, interceptors=(self._interceptor,), maximum_concurrent_rpcs=CALLS_MAX
        )
        for service in self._services:
            service.add_to(server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        names = [service.NAME for service in self._services]
        reflection.enable_server_reflection([*names, health.SERVICE_NAME, reflection.SERVICE_NAME], server)
        self._gateway, port = self._open_gateway()
        where = f"unix:{self._gateway.private.path}"
        if self._settings.tls_certificate:
            server.add_secure_port(where, server_credentials(self._settings))
        else:
            server.add_insecure_port(where)
        self._server = server
        if own_token is not None:
            self._signpost = Signpost(self._host, port, own_token)
            self._signpost.start()
        server.start()
        self._gateway.start()
        for name in ("", *names):
            self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        return self._host, port

    def stop(self, grace_s: float) -> None:
        """End streams, let running calls finish within `grace_s` seconds, and close the port. Idempotent."""
        if self._signpost is not None:
            self._signpost.stop()
        self._health.enter_graceful_shutdown()
        for service in self._services:
            service.close()
        if self._gateway is not None:
            self._gateway.shut()
        if self._server is not None:
            self._server.stop(grace_s).wait()
            self._server = None
        if self._gateway is not None:
            self._gateway.stop()
            self._gateway = None
        for share in (self._known, self._strangers):
            share.pool.shutdown()
        if self._interceptor is not None:
            self._interceptor.close()

    def stats(self) -> Mapping[str, int | float]:
        """Return metrics of the port's connections."""
        gateway = self._gateway
        return gateway.stats() if gateway is not None else {}

    def _open_gateway(self) -> tuple[Gateway, int]:
        """Bind the port; return its gateway and the port number.

        Raises:
            StartRefused: the port cannot be bound, or there is no directory for the private socket.
        """
        limits = self._limits
        door = Limits(limits.connections_max, limits.connections_per_address_max, limits.handshake_timeout_ms / 1000)
        try:
            gateway = Gateway("admin", door, wait_s=limits.send_timeout_ms / 1000)
        except OSError as error:
            raise StartRefused(
                f"adminPort={self._port}: cannot create a directory for a private socket ({error.strerror}); set TMPDIR"
                " to a directory that this user may write to"
            ) from error
        where = f"{self._host}:{self._port}"
        try:
            return gateway, gateway.listen(self._host, self._port)
        except OSError as error:
            gateway.stop()
            raise StartRefused(
                f"adminPort={self._port}: cannot listen on {where} ({error.strerror}); set another port or adminHost"
            ) from error


def open_plane(control: Control) -> AdminPlane | None:
    """Return the admin plane of a bookie; None if adminPort is -1. The entry point of the group `bookie.planes`."""
    return AdminPlane(control) if control.admin_port >= 0 else None
