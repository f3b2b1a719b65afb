"""The embedded store of another process, over gRPC (`grpc:`, `grpcs:`): the same keys, sessions and changes.

There are two daemon threads: one keeps the session alive and opens another when it was lost, one follows the stream
of changes. Calls run on the caller's thread; after a lost answer they are repeated until the session timeout.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import grpc

from bookie.admin_port.channel import BUSY, AdminAccess, open_channel
from bookie.errors import BookKeeperError, IncorrectParameter, MetadataStoreError, SecurityError
from bookie.metadata.key_value.keys import (
    NO_SESSION,
    VALUE_BYTES_MAX,
    Item,
    KeyAbsent,
    KeyExists,
    SessionExpired,
    StoreFull,
    VersionConflict,
    Watchers,
)
from bookie.pb import metadata_service_pb2 as pb
from bookie.pb.metadata_service_pb2_grpc import MetadataStoreStub


class NotPermitted(SecurityError):
    """The store knows the caller, but its role does not permit this call."""


RETRY_S = 0.1
KEEP_ALIVES_PER_TTL = 4
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
LOST_ANSWER = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED}
CHANNEL_OPTIONS = [
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.max_receive_message_length", 2 * VALUE_BYTES_MAX),
]
log = logging.getLogger(__name__)


class RemoteStore:
    """The connection to the store at `target` (host:port). A caller whose role permits no session can still read."""

    def __init__(self, target: str, access: AdminAccess | None = None, *, session_timeout_s: float) -> None:
        self._target = target
        self._access = access or AdminAccess()
        self._timeout_s = session_timeout_s
        self._channel: Any = None
        self._stub: Any = None
        self._session = NO_SESSION
        self._stopping = threading.Event()
        self._loss_listeners: list[Callable[[], None]] = []
        self._interruption_listeners: list[Callable[[], None]] = []
        self._watchers = Watchers()
        self._lock = threading.Lock()
        # The fields below are guarded by _lock.
        self._stream: Any = None
        self._threads = (
            threading.Thread(target=self._keep_alive, name="metadata-session", daemon=True),
            threading.Thread(target=self._follow, name="metadata-changes", daemon=True),
        )

    def start(self) -> None:
        """Connect. Raises MetadataStoreError if the store does not answer within the session timeout."""
        if self._channel is not None:
            return
        self._channel = open_channel(self._target, self._access, CHANNEL_OPTIONS)
        self._stub = MetadataStoreStub(self._channel)  # type: ignore[no-untyped-call]  # generated
        try:
            self._session = self._open_session()
        except NotPermitted as error:
            log.info(
                "no session with the metadata store, only reads are permitted target=%s error=%s", self._target, error
            )
        except BookKeeperError:
            self._channel.close()
            self._channel = None  # `stop` has nothing to do
            raise
        keeper, follower = self._threads
        follower.start()
        if self._session != NO_SESSION:
            keeper.start()

    def stop(self) -> None:
        """Close the session, which deletes our keys at once, and the connection; idempotent."""
        with self._lock:
            if self._stopping.is_set() or self._channel is None:
                return
            self._stopping.set()
            stream = self._stream
        if stream is not None:
            stream.cancel()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        try:
            if self._session != NO_SESSION:
                self._stub.CloseSession(pb.CloseSessionRequest(session=self._session), timeout=1.0)
        except grpc.RpcError as error:  # the session expires by itself
            log.info("cannot close the session, it will expire target=%s error=%s", self._target, error)
        self._channel.close()

    # Keys

    def get(self, key: str) -> Item | None:
        try:
            found = self._call(self._stub.Get, pb.GetRequest(key=key))
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

        reply = self._call(self._stub.Put, request, settle)
        return reply if isinstance(reply, Item) else Item(value, reply.version, reply.created_ms, session)

    def delete(self, key: str, expected: int | None = None) -> None:
        def settle(refusal: BookKeeperError) -> None:
            if not isinstance(refusal, KeyAbsent):
                raise refusal

        self._call(self._stub.Delete, pb.DeleteRequest(key=key, expected=expected), settle)

    def keys(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        return list(self._call(self._stub.List, pb.ListRequest(prefix=prefix, after=after, limit=limit)).keys)

    def increment(self, key: str) -> int:
        return int(self._call(self._stub.Increment, pb.IncrementRequest(key=key)).value)

    # Changes and sessions

    def watch(self, touched: Callable[[str], None]) -> Callable[[], None]:
        return self._watchers.add(touched)

    def session(self) -> int:
        """Return the session. Raises SecurityError if there is none, since only calls other than reads need it."""
        if self._session == NO_SESSION:
            raise NotPermitted(
                f"metadata store {self._target}: this caller may not open a session; it needs the role operate"
            )
        return self._session

    def on_session_loss(self, listener: Callable[[], None]) -> None:
        self._loss_listeners.append(listener)

    def on_interruption(self, listener: Callable[[], None]) -> None:
        self._interruption_listeners.append(listener)

    def _interrupted(self) -> None:
        for listener in self._interruption_listeners:
            listener()

    def _call(self, method: Any, request: object, settle: Callable[[BookKeeperError], object] | None = None) -> Any:
        """Call a method, and repeat it after a lost answer. `settle` judges a refusal that may be due to our own
        earlier success.
        """
        deadline = time.monotonic() + self._timeout_s
        answer_lost, why = False, ""
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or self._stopping.is_set():
                raise MetadataStoreError(
                    f"metadata store {self._target} did not answer within {self._timeout_s:g} s: "
                    f"check metadataServiceUri and that the process with the store runs{why}"
                )
            try:
                return method(request, timeout=left)
            except grpc.RpcError as error:
                busy = BUSY in (error.trailing_metadata() or ())
                if busy or error.code() in LOST_ANSWER:
                    answer_lost |= not busy
                    why = f" ({' '.join((error.details() or '').split())})"
                    self._stopping.wait(min(RETRY_S, left))
                    continue
                kind = REFUSALS.get(error.code(), MetadataStoreError)
                refusal = kind(f"metadata store {self._target}: {error.details()}")
                if answer_lost and settle is not None:
                    return settle(refusal)
                raise refusal from error

    def _open_session(self) -> int:
        request = pb.OpenSessionRequest(ttl_ms=int(self._timeout_s * 1000))
        return int(self._call(self._stub.OpenSession, request).session)

    def _keep_alive(self) -> None:
        due_s = self._timeout_s / KEEP_ALIVES_PER_TTL
        late = False
        while not self._stopping.wait(due_s):
            began = time.monotonic()
            try:
                self._call(self._stub.KeepAlive, pb.KeepAliveRequest(session=self._session))
                if late or time.monotonic() - began > due_s:  # the store may have stalled for others, too
                    self._interrupted()
                late = False
            except SessionExpired:
                self._renew_session()
            except BookKeeperError as error:
                late = True
                log.warning("cannot keep the session alive target=%s error=%s", self._target, error)

    def _renew_session(self) -> None:
        try:
            self._session = self._open_session()
        except BookKeeperError as error:  # the old session is still unknown, so the next keep-alive tries again
            log.warning("cannot open a new session target=%s error=%s", self._target, error)
            return
        log.warning("session expired, opened a new one target=%s", self._target)
        self._interrupted()
        for listener in self._loss_listeners:
            listener()

    def _follow(self) -> None:
        ended = False
        while (stream := self._open_stream()) is not None:
            try:
                for change in stream:
                    if ended:  # before anybody looks at what the store says now
                        ended = False
                        self._interrupted()
                    self._watchers.tell([change.key])
            except grpc.RpcError as error:
                ended = True
                if not self._stopping.wait(RETRY_S):
                    log.info("stream of changes ended target=%s error=%s", self._target, error)

    def _open_stream(self) -> Any:
        """Open the stream of changes, or return None when stopping, since `stop` must know every open stream."""
        with self._lock:
            if not self._stopping.is_set():
                self._stream = self._stub.Watch(pb.WatchRequest(), wait_for_ready=True)
                return self._stream
        return None
