"""The embedded store of another process, over gRPC (`grpc:`, `grpcs:`): the same keys, sessions and changes.

`connected` says what its threads do, and when calls are repeated.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any, cast

import grpc

from bookie.admin_port.channel import BUSY, AdminAccess, open_channel
from bookie.errors import BookKeeperError, IncorrectParameter, MetadataStoreError, SecurityError
from bookie.metadata.key_value.connected import LOST_ANSWER, RETRY_S, ConnectedStore, NotPermitted
from bookie.metadata.key_value.keys import (
    NO_SESSION,
    VALUE_BYTES_MAX,
    Item,
    KeyAbsent,
    KeyExists,
    SessionExpired,
    StoreFull,
    VersionConflict,
)
from bookie.pb import metadata_service_pb2 as pb
from bookie.pb.metadata_service_pb2_grpc import MetadataStoreStub

REFUSALS: dict[grpc.StatusCode, type[BookKeeperError]] = {
    grpc.StatusCode.NOT_FOUND: KeyAbsent,
    grpc.StatusCode.ALREADY_EXISTS: KeyExists,
    grpc.StatusCode.ABORTED: VersionConflict,
    grpc.StatusCode.FAILED_PRECONDITION: SessionExpired,
    grpc.StatusCode.RESOURCE_EXHAUSTED: StoreFull,
    grpc.StatusCode.INVALID_ARGUMENT: IncorrectParameter,
    grpc.StatusCode.UNAUTHENTICATED: SecurityError,
    grpc.StatusCode.PERMISSION_DENIED: NotPermitted,
}
HANDSHAKE_FAILED = "tls handshake failed"
"""What gRPC says of a port without TLS, and of a certificate that it does not trust: waiting does not help."""
CHANNEL_OPTIONS = [
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.max_receive_message_length", 2 * VALUE_BYTES_MAX),
]
log = logging.getLogger(__name__)


class RemoteStore(ConnectedStore):
    """The connection to the store at `target` (host:port). A caller whose role permits no session can still read."""

    def __init__(self, target: str, access: AdminAccess | None = None, *, session_timeout_s: float) -> None:
        super().__init__(target, session_timeout_s=session_timeout_s)
        self._access = access or AdminAccess()
        self._channel: Any = None
        self._stub: Any = None
        self._lock = threading.Lock()
        # The fields above and below are guarded by _lock, after `start`.
        self._stream: Any = None

    def start(self) -> None:
        """Connect. Raises MetadataStoreError if the store does not answer within the session timeout."""
        if self._channel is not None:
            return
        self._channel = open_channel(self._name, self._access, CHANNEL_OPTIONS)
        self._stub = MetadataStoreStub(self._channel)  # type: ignore[no-untyped-call]  # generated
        try:
            self._session = self._open_session()
        except NotPermitted as error:
            log.info(
                "no session with the metadata store, only reads are permitted target=%s error=%s", self._name, error
            )
        except BookKeeperError:
            self._channel.close()
            self._channel = None  # `stop` has nothing to do
            raise
        self._follower.start()
        if self._session != NO_SESSION:
            self._keeper.start()

    def stop(self) -> None:
        """Close the session, which deletes our keys at once, and the connection; idempotent."""
        with self._lock:
            if self._stopping.is_set() or self._channel is None:
                return
            self._stopping.set()
            stream = self._stream
        if stream is not None:
            stream.cancel()
        self._join()
        try:
            if self._session != NO_SESSION:
                self._stub.CloseSession(pb.CloseSessionRequest(session=self._session), timeout=1.0)
        except (grpc.RpcError, ValueError) as error:  # the session expires by itself
            log.info("cannot close the session, it will expire target=%s error=%s", self._name, error)
        self._channel.close()

    def _cut(self) -> None:
        with self._lock:
            ended = self._channel
            try:
                self._channel = open_channel(self._name, self._access, CHANNEL_OPTIONS)
            except BookKeeperError as error:  # a file is being replaced; calls on the closed channel fail
                log.warning("cannot connect again target=%s error=%s", self._name, error)
            else:
                self._stub = MetadataStoreStub(self._channel)  # type: ignore[no-untyped-call]  # generated
        ended.close()

    def _method(self, name: str) -> Callable[..., Any]:
        """Return a method of the service, on the connection that there is when it is called."""

        def call(request: Any, timeout: float) -> Any:
            with self._lock:
                method = getattr(self._stub, name)
            return method(request, timeout=timeout)

        return call

    # Keys

    def get(self, key: str) -> Item | None:
        try:
            found = self._call(self._method("Get"), pb.GetRequest(key=key))
        except KeyAbsent:
            return None
        return Item(found.value, found.version, found.created_ms, found.session)

    def put(self, key: str, value: bytes, expected: int | None, session: int = NO_SESSION) -> Item:
        request = pb.PutRequest(key=key, value=value, expected=expected, session=session)

        def settle(refusal: BookKeeperError) -> Item:
            found = self.get(key)
            version = 0 if expected is None else expected + 1
            if found is None or (found.value, found.version, found.session) != (value, version, session):
                raise refusal
            return found

        reply = self._call(self._method("Put"), request, settle)
        return reply if isinstance(reply, Item) else Item(value, reply.version, reply.created_ms, session)

    def delete(self, key: str, expected: int | None = None) -> None:
        def settle(refusal: BookKeeperError) -> None:
            if not isinstance(refusal, KeyAbsent):
                raise refusal

        self._call(self._method("Delete"), pb.DeleteRequest(key=key, expected=expected), settle)

    def keys(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        return list(self._call(self._method("List"), pb.ListRequest(prefix=prefix, after=after, limit=limit)).keys)

    def increment(self, key: str) -> int:
        return int(self._call(self._method("Increment"), pb.IncrementRequest(key=key)).value)

    # Changes and sessions

    def session(self) -> int:
        """Return the session. Raises SecurityError if there is none, since only calls other than reads need it."""
        if self._session == NO_SESSION:
            raise NotPermitted(
                f"metadata store {self._name}: this caller may not open a session; it needs the role operate"
            )
        return self._session

    def _refusal(self, error: grpc.RpcError) -> BookKeeperError | None:
        said = error.details() or ""
        if self._session == NO_SESSION and HANDSHAKE_FAILED in said.lower():  # before that, it has never worked
            return MetadataStoreError(
                f"metadata store {self._name}: the TLS handshake failed; check that the port has TLS, and ca= of the"
                f" URI ({' '.join(said.split())})"
            )
        if _busy(error) or error.code() in LOST_ANSWER:
            return None
        return REFUSALS.get(error.code(), MetadataStoreError)(f"metadata store {self._name}: {error.details()}")

    def _may_have_worked(self, error: grpc.RpcError) -> bool:
        return not _busy(error)

    def _open_session(self) -> int:
        request = pb.OpenSessionRequest(ttl_ms=int(self._timeout_s * 1000))
        return int(self._call(self._method("OpenSession"), request).session)

    def _keep_session(self) -> None:
        self._call(self._method("KeepAlive"), pb.KeepAliveRequest(session=self._session))

    def _follow(self) -> None:
        ended = False
        while not self._stopping.is_set():
            try:
                for change in self._open_stream():
                    if ended:  # before anybody looks at what the store says now
                        ended = False
                        self._interrupted()
                    self._watchers.tell([change.key])
            except (grpc.RpcError, ValueError) as error:  # the second one if the channel was cut and not replaced
                ended = True
                if not self._stopping.wait(RETRY_S):
                    log.info("stream of changes ended target=%s error=%s", self._name, error)

    def _open_stream(self) -> Iterable[Any]:
        """Open the stream of changes, or return none when stopping, since `stop` must know every open stream."""
        with self._lock:
            if self._stopping.is_set():
                return ()
            self._stream = self._stub.Watch(pb.WatchRequest(), wait_for_ready=True)
            return cast("Iterable[Any]", self._stream)


def _busy(error: grpc.RpcError) -> bool:
    """Return whether the call was refused without any effect."""
    return BUSY in (error.trailing_metadata() or ())
