"""The admin plane: one gRPC server on `adminPort`, started with the bookie through the group `bookie.planes`.

gRPC's own threads and a pool of ours; no bytes of entries pass here. It has no access control yet, so it belongs on the
loopback address.
"""

from concurrent import futures

import grpc

from admin.embedded_metadata import STREAMS_MAX, MetadataService
from admin.garbage import GarbageService
from bookie.errors import StartRefused
from bookie.metadata.embedded import EmbeddedStore
from bookie.server.control import Control

__all__ = ["AdminPlane", "open_plane"]

CALL_THREADS = 8
OPTIONS = (("grpc.so_reuseport", 0),)  # two processes on one port would each get a part of the calls


class AdminPlane:
    """Garbage collection of this bookie; and its metadata store for other processes, where that is embedded."""

    def __init__(self, control: Control) -> None:
        self._host = control.admin_host
        self._port = control.admin_port
        store = getattr(control.metadata, "store", None)
        self._metadata = MetadataService(store) if isinstance(store, EmbeddedStore) else None
        self._garbage = GarbageService(control)
        self._pool = futures.ThreadPoolExecutor(STREAMS_MAX + CALL_THREADS, thread_name_prefix="admin")
        self._server: grpc.Server | None = None

    def start(self) -> tuple[str, int]:
        """Bind and serve; the bound address. Raises StartRefused."""
        server = grpc.server(self._pool, options=OPTIONS)
        self._garbage.add_to(server)
        if self._metadata is not None:
            self._metadata.add_to(server)
        try:
            port = server.add_insecure_port(f"{self._host}:{self._port}")
        except RuntimeError as error:
            raise StartRefused(
                f"adminPort={self._port}: cannot listen on {self._host}:{self._port}; set another port or adminHost"
            ) from error
        server.start()
        self._server = server
        return self._host, port

    def stop(self, grace_s: float) -> None:
        """End streams, let calls finish within `grace_s`, close; idempotent."""
        if self._metadata is not None:
            self._metadata.close()
        if self._server is not None:
            self._server.stop(grace_s).wait()
            self._server = None
        self._pool.shutdown()


def open_plane(control: Control) -> AdminPlane:
    """The plane of this bookie."""
    return AdminPlane(control)
