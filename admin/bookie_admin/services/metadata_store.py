"""The gRPC service that gives other processes access to the embedded metadata store of this one.

Runs on the threads of its server. Every open change stream occupies one of them, so the server needs more than
`STREAMS_MAX` threads. Call `close`, which ends the streams, before the server is stopped.
"""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc

from bookie.errors import BookKeeperError, IncorrectParameter
from bookie.metadata.key_value.embedded import UNLIMITED, EmbeddedStore, SessionLimits
from bookie.metadata.key_value.keys import Item, KeyAbsent, KeyExists, SessionExpired, StoreFull, VersionConflict
from bookie.pb import metadata_service_pb2 as pb
from bookie.pb.metadata_service_pb2_grpc import add_MetadataStoreServicer_to_server
from bookie_admin.private_socket import peer_named

STREAMS_MAX = 32
KEYS_PENDING_MAX = 10_000
PAGE_MAX = 10_000
TTL_MS_MIN, TTL_MS_MAX = 100, 300_000
HEARTBEAT_S = 1.0
STATUS_OF = {
    KeyAbsent: grpc.StatusCode.NOT_FOUND,
    KeyExists: grpc.StatusCode.ALREADY_EXISTS,
    VersionConflict: grpc.StatusCode.ABORTED,
    SessionExpired: grpc.StatusCode.FAILED_PRECONDITION,
    StoreFull: grpc.StatusCode.RESOURCE_EXHAUSTED,
    IncorrectParameter: grpc.StatusCode.INVALID_ARGUMENT,
}


class _Changes:
    """The changed keys that one stream has not sent yet. Too many of them are reduced to "any key may have changed"."""

    def __init__(self) -> None:
        self._arrived = threading.Condition()
        self._keys: dict[str, None] = {"": None}  # the first message says that the watch is active
        self._closed = False

    def add(self, key: str) -> None:
        with self._arrived:
            if len(self._keys) >= KEYS_PENDING_MAX:
                self._keys = {"": None}
            else:
                self._keys[key] = None
            self._arrived.notify()

    def close(self) -> None:
        with self._arrived:
            self._closed = True
            self._arrived.notify()

    def take(self) -> list[str] | None:
        """Return the keys that changed since the last call, possibly none after a while; None when closed."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._keys or self._closed, HEARTBEAT_S)
            if self._closed:
                return None
            keys, self._keys = list(self._keys), {}
            return keys


class MetadataService:
    """Implements the methods of bookie.metadata.v1.MetadataStore over one embedded store."""

    NAME = "bookie.metadata.v1.MetadataStore"

    def __init__(
        self, store: EmbeddedStore, *, streams_max: int = STREAMS_MAX, limits: SessionLimits = UNLIMITED
    ) -> None:
        self._store = store
        self._limits = limits
        self._streams_max = streams_max
        self._lock = threading.Lock()
        self._streams: set[_Changes] = set()  # guarded by _lock
        self._closed = False

    def add_to(self, server: grpc.Server) -> None:
        add_MetadataStoreServicer_to_server(self, server)  # type: ignore[no-untyped-call]  # generated

    def close(self) -> None:
        """End all change streams. Idempotent."""
        with self._lock:
            self._closed = True
            streams = list(self._streams)
        for changes in streams:
            changes.close()

    def _find(self, key: str) -> Item:
        item = self._store.get(key)
        if item is None:
            raise KeyAbsent(f"key {key!r} does not exist")
        return item

    # The names and arguments of the following methods are those of the service.

    def Get(self, request: pb.GetRequest, context: grpc.ServicerContext) -> pb.Item:  # noqa: N802
        item = _answer(context, lambda: self._find(request.key))
        return pb.Item(
            key=request.key,
            value=item.value,
            version=item.version,
            created_ms=item.created_ms,
            session=item.session,
        )

    def Put(self, request: pb.PutRequest, context: grpc.ServicerContext) -> pb.PutReply:  # noqa: N802
        expected = request.expected if request.HasField("expected") else None
        item = _answer(context, lambda: self._store.put(request.key, request.value, expected, request.session))
        return pb.PutReply(version=item.version, created_ms=item.created_ms)

    def Delete(self, request: pb.DeleteRequest, context: grpc.ServicerContext) -> pb.DeleteReply:  # noqa: N802
        expected = request.expected if request.HasField("expected") else None
        _answer(context, lambda: self._store.delete(request.key, expected))
        return pb.DeleteReply()

    def List(self, request: pb.ListRequest, context: grpc.ServicerContext) -> pb.ListReply:  # noqa: N802
        limit = min(max(request.limit, 1), PAGE_MAX)
        return pb.ListReply(keys=_answer(context, lambda: self._store.keys(request.prefix, request.after, limit)))

    def Increment(  # noqa: N802
        self, request: pb.IncrementRequest, context: grpc.ServicerContext
    ) -> pb.IncrementReply:
        return pb.IncrementReply(value=_answer(context, lambda: self._store.increment(request.key)))

    def OpenSession(  # noqa: N802
        self, request: pb.OpenSessionRequest, context: grpc.ServicerContext
    ) -> pb.OpenSessionReply:
        if not TTL_MS_MIN <= request.ttl_ms <= TTL_MS_MAX:
            context.abort(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"session timeout {request.ttl_ms} ms is out of range; use {TTL_MS_MIN} to {TTL_MS_MAX} ms",
            )
        owner = _address(peer_named(context.peer()))
        return pb.OpenSessionReply(
            session=_answer(context, lambda: self._store.open_session(request.ttl_ms, owner, self._limits))
        )

    def KeepAlive(  # noqa: N802
        self, request: pb.KeepAliveRequest, context: grpc.ServicerContext
    ) -> pb.KeepAliveReply:
        _answer(context, lambda: self._store.keep_alive(request.session))
        return pb.KeepAliveReply()

    def CloseSession(  # noqa: N802
        self, request: pb.CloseSessionRequest, context: grpc.ServicerContext
    ) -> pb.CloseSessionReply:
        _answer(context, lambda: self._store.close_session(request.session))
        return pb.CloseSessionReply()

    def Watch(  # noqa: N802
        self,
        request: pb.WatchRequest,  # noqa: ARG002
        context: grpc.ServicerContext,
    ) -> Iterator[pb.Change]:
        changes = _Changes()
        with self._lock:
            if self._closed or len(self._streams) >= self._streams_max:
                context.abort(
                    grpc.StatusCode.RESOURCE_EXHAUSTED,
                    f"all {self._streams_max} change streams are in use; retry later",
                )
            self._streams.add(changes)
        end_watch = self._store.watch(changes.add)
        try:
            while (keys := changes.take()) is not None and context.is_active():
                for key in keys:
                    yield pb.Change(key=key)
        finally:
            end_watch()
            with self._lock:
                self._streams.discard(changes)


def _address(peer: str) -> str:
    """Return the address of a peer in gRPC's notation, such as `ipv4:10.0.0.9:50312`, without the port."""
    return peer.rpartition(":")[0] or peer


def _answer(context: Any, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except BookKeeperError as error:
        context.abort(STATUS_OF.get(type(error), grpc.StatusCode.INTERNAL), str(error))
