"""Versioned keys with sessions in etcd: the interface `key_value.keys.KeyValues` over etcd's v3 API.

All keys are below a scope, as `/scope/cookies/…`. A version is the revision at which a key was last changed, so that no
version comes back after a key was deleted and created again. A session is a lease. Reads are linearizable. The watch
resumes at the revision after the last one that it saw; when etcd has compacted that, any key may have changed.
"""

import logging
import math
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import grpc

from bookie.errors import BookKeeperError, IncorrectParameter, MetadataStoreError, SecurityError
from bookie.metadata.etcd.endpoints import STALE_TOKEN, AskedKeys, Endpoints, EtcdAccess
from bookie.metadata.key_value.connected import LOST_ANSWER, RETRY_S, ConnectedStore, NotPermitted
from bookie.metadata.key_value.keys import (
    NO_SESSION,
    Item,
    KeyAbsent,
    KeyExists,
    SessionExpired,
    StoreFull,
    VersionConflict,
)
from bookie.pb import etcd_pb2 as pb

__all__ = ["EtcdStore"]

TTL_S_MIN = 2
SIGNS_PER_TTL = 4
"""How often the watch asks its member for a sign of life; it moves on after half a session timeout without any."""
REFUSALS: dict[grpc.StatusCode, type[BookKeeperError]] = {
    grpc.StatusCode.NOT_FOUND: SessionExpired,  # the only thing that a request of ours names and may be unknown
    grpc.StatusCode.RESOURCE_EXHAUSTED: StoreFull,
    grpc.StatusCode.INVALID_ARGUMENT: IncorrectParameter,
    grpc.StatusCode.UNAUTHENTICATED: SecurityError,
    grpc.StatusCode.PERMISSION_DENIED: NotPermitted,
}
REPEATED = ("too many requests", "context deadline exceeded", "context canceled", *STALE_TOKEN)
"""What etcd says, with codes that mean something else, when a call is to be repeated: the second and third come from a
member that gave up on the others.
"""
NO_USER = "user name is empty"
TOO_LARGE = ("request is too large", "message larger than max")
"""What etcd says of a request above its limit, and gRPC of one far above it."""
SESSIONS = "sessions"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Mark:
    """The mark of a session: a key that ends with its lease, and the revision at which it was put."""

    session: int
    key: bytes
    revision: int


class EtcdStore(ConnectedStore):
    """The keys below `scope` in the etcd cluster at `hosts` (host:port)."""

    def __init__(
        self, hosts: tuple[str, ...], scope: str, access: EtcdAccess | None = None, *, session_timeout_s: float
    ) -> None:
        super().__init__(f"etcd at {','.join(hosts)}", session_timeout_s=session_timeout_s)
        self._hosts = hosts
        self._scope = scope
        self._below = f"{scope}/"
        self._access = access or EtcdAccess()
        # With several members, one that hangs takes only a part of the time that a call has.
        self._attempt_s = session_timeout_s / (len(hosts) + 1) if len(hosts) > 1 else session_timeout_s
        self._endpoints: Endpoints | None = None
        self._seen = 0  # the last revision whose changes are known; after `start` on the thread of changes
        self._heard = 0.0  # when the watch last said anything, by the monotonic clock
        self._lock = threading.Lock()
        # The fields below are guarded by _lock.
        self._mark = _Mark(NO_SESSION, b"", 0)
        self._spent = 0  # no create uses a mark of this revision or before
        self._stream: Any = None
        self._stream_ended = threading.Event()

    def start(self) -> None:
        """Connect. Raises MetadataStoreError if no member answers within the session timeout."""
        if self._endpoints is not None:
            return
        self._endpoints = Endpoints(self._hosts, self._access)
        try:
            self._seen = self._range(pb.RangeRequest(key=self._scope.encode(), count_only=True)).header.revision
            self._session = self._open_session()
        except BookKeeperError:
            self._endpoints.close()
            self._endpoints = None  # `stop` has nothing to do
            raise
        self._follower.start()
        self._keeper.start()

    def stop(self) -> None:
        """End the session, which deletes our keys at once, and the connection; idempotent."""
        with self._lock:
            if self._stopping.is_set() or self._endpoints is None:
                return
            self._stopping.set()
        self._end_stream()
        self._join()
        try:
            self._endpoints.call("Lease/LeaseRevoke", pb.LeaseRevokeRequest(id=self._session), 1.0)
        except (grpc.RpcError, ValueError, BookKeeperError) as error:  # the session expires by itself
            log.info("cannot end the lease, it will expire target=%s error=%s", self._name, error)
        self._endpoints.close()

    def _cut(self) -> None:
        self._open_endpoints().cut()

    # Keys

    def get(self, key: str) -> Item | None:
        found = self._range(pb.RangeRequest(key=self.full(key))).kvs
        return _item(found[0]) if found else None

    def put(self, key: str, value: bytes, expected: int | None, session: int = NO_SESSION) -> Item:
        full = self.full(key)
        put = pb.PutRequest(key=full, value=value, lease=session)
        if expected is None:
            reply, repeated = self._create(put)
        else:
            compare = [_changed_at(full, expected)]
            request = pb.TxnRequest(compare=compare, success=[pb.RequestOp(request_put=put)], failure=[_read(full)])
            reply, repeated = self._transact(request)
        if reply.succeeded:
            return Item(value, reply.header.revision, 0, session)
        found = _found(reply)
        if repeated and found is not None and (found.value, found.lease) == (value, session):
            return _item(found)  # the answer to our own put was lost
        if expected is None:
            raise KeyExists(f"key {key} already exists")
        raise self._conflict(reply, key, expected)

    def _create(self, put: pb.PutRequest) -> tuple[Any, bool]:
        """Put a key that must not exist, and return what `_transact` does.

        A member that hangs may carry out a request long after the call has ended, when the key was created and deleted
        again. So a create also compares the mark of our session, a key under its lease: it is put again before a create
        follows one that had no answer, and ends with the session.
        """
        absent = _created_at(put.key, 0)
        deadline = time.monotonic() + self._timeout_s
        unanswered = False
        while True:
            used: list[_Mark] = []

            def send(_: object, timeout: float, used: list[_Mark] = used) -> Any:
                mark = self._session_mark(timeout)
                used.append(mark)
                request = pb.TxnRequest(
                    compare=[absent, _changed_at(mark.key, mark.revision)],
                    success=[pb.RequestOp(request_put=put)],
                    failure=[_read(put.key), _read(mark.key)],
                )
                try:
                    return self._open_endpoints().call("KV/Txn", request, timeout)
                except grpc.RpcError:
                    self._spend(mark)
                    raise

            try:
                reply = self._call(send, None, attempt_s=self._attempt_s)
            except SessionExpired:  # the thread that keeps the session alive opens another one
                if put.lease != NO_SESSION or time.monotonic() > deadline or self._stopping.wait(RETRY_S):
                    raise
                unanswered = unanswered or len(used) > 1
                continue
            unanswered = unanswered or len(used) > 1
            if reply.succeeded or _revision(reply, 1) == used[-1].revision:
                return reply, unanswered
            self._spend(used[-1])  # another thread of ours has put the mark again, or the cluster was deleted

    def _session_mark(self, timeout: float) -> _Mark:
        """Return the mark of the session, after putting it if the one before is spent or none was put."""
        with self._lock:
            mark = self._mark
        session = self._session
        if mark.session == session and mark.revision > self._spent:
            return mark
        key = self.full(f"{SESSIONS}/{session:016x}")
        request = pb.TxnRequest(success=[pb.RequestOp(request_put=pb.PutRequest(key=key, lease=session))])
        reply = self._open_endpoints().call("KV/Txn", request, timeout)
        mark = _Mark(session, key, reply.header.revision)
        with self._lock:
            if mark.revision > self._mark.revision:
                self._mark = mark
        return mark

    def _spend(self, mark: _Mark) -> None:
        """Let no further create use a mark."""
        with self._lock:
            self._spent = max(self._spent, mark.revision)

    def delete(self, key: str, expected: int | None = None) -> None:
        if expected is not None:
            self._delete(key, expected)
            return
        # A member that hangs may carry out a request long after the call has ended. So each one names the version that
        # is there now, not a later one.
        while True:
            item = self.get(key)
            if item is None:
                raise KeyAbsent(f"key {key} does not exist")
            with suppress(VersionConflict):
                self._delete(key, item.version)
                return

    def _delete(self, key: str, expected: int) -> None:
        full = self.full(key)
        request = pb.TxnRequest(
            compare=[_changed_at(full, expected)],
            success=[pb.RequestOp(request_delete_range=pb.DeleteRangeRequest(key=full))],
            failure=[_read(full)],
        )
        reply, repeated = self._transact(request)
        if not reply.succeeded and not (repeated and _found(reply) is None):
            raise self._conflict(reply, key, expected)

    def keys(self, prefix: str, after: str = "", limit: int = 1000) -> list[str]:
        start = self.full(after) + b"\0" if after else self.full(prefix)
        request = pb.RangeRequest(key=start, range_end=_end(self.full(prefix)), limit=limit, keys_only=True)
        cut = len(self._below.encode())
        return [found.key[cut:].decode("utf-8", "replace") for found in self._range(request).kvs]

    def ask(self, start: bytes, end: bytes, limit: int, *, ahead: bool) -> AskedKeys:
        """Ask for at most `limit` keys from `start` to before `end`, ascending, which include the scope.

        Args:
            start: The first key.
            end: The key after the last one. etcd counts all keys before it.
            limit: How many keys to return at most.
            ahead: Send the request now; without this, it is sent when the answer is used.
        """
        request = pb.RangeRequest(key=start, range_end=end, limit=limit, keys_only=True)
        sent = None
        if ahead and not self._stopping.is_set():
            # A login may fail, or the channel be cut: the request is repeated when the answer is used.
            with suppress(grpc.RpcError, ValueError, BookKeeperError):
                sent = self._open_endpoints().begin("KV/Range", request, self._attempt_s)
        return AskedKeys(lambda: self._range(request), sent)

    def items(self, first: bytes, last: bytes) -> list[tuple[bytes, Item]]:
        """Return all keys from `first` to `last`, ascending, which include the scope, and what is stored."""
        found = self._range(pb.RangeRequest(key=first, range_end=last + b"\0")).kvs
        return [(one.key, _item(one)) for one in found]

    def increment(self, key: str) -> int:
        full = self.full(key)
        request = pb.TxnRequest(success=[pb.RequestOp(request_put=pb.PutRequest(key=full)), _read(full)])
        reply, _ = self._transact(request)
        return int(reply.responses[1].response_range.kvs[0].version) - 1

    def counts(self, prefix: str) -> dict[str, int]:
        """Return how often each counter was incremented whose key starts with `prefix`."""
        start = self.full(prefix)
        found = self._range(pb.RangeRequest(key=start, range_end=_end(start), keys_only=True)).kvs
        return {self._short(one.key): int(one.version) for one in found}

    def create_all(self, values: Mapping[str, bytes]) -> bool:
        """Create the scope's own key and these keys at once, and return whether the scope was new."""
        root = self._scope.encode()
        puts = [pb.RequestOp(request_put=pb.PutRequest(key=root))]
        puts += [
            pb.RequestOp(request_put=pb.PutRequest(key=self.full(key), value=value)) for key, value in values.items()
        ]
        request = pb.TxnRequest(compare=[_created_at(root, 0)], success=puts)
        reply, repeated = self._transact(request)
        if reply.succeeded or not repeated:
            return bool(reply.succeeded)
        stored = {key: item.value if (item := self.get(key)) else None for key in values}
        return stored == dict(values)

    def delete_all(self) -> None:
        """Delete the scope's own key and all keys below it, at once."""
        below = self._below.encode()
        ranges = [
            pb.DeleteRangeRequest(key=self._scope.encode()),
            pb.DeleteRangeRequest(key=below, range_end=_end(below)),
        ]
        self._transact(pb.TxnRequest(success=[pb.RequestOp(request_delete_range=one) for one in ranges]))

    def full(self, key: str) -> bytes:
        """Return a key with the scope, as etcd has it."""
        return f"{self._below}{key}".encode()

    def _short(self, full: bytes) -> str:
        return full.decode("utf-8", "replace").removeprefix(self._below)

    def _conflict(self, reply: Any, key: str, expected: int) -> BookKeeperError:
        """Return why a transaction did nothing."""
        if _found(reply) is None:
            return KeyAbsent(f"key {key} does not exist")
        return VersionConflict(f"key {key} is no longer at version {expected}")

    # Calls

    def _range(self, request: pb.RangeRequest) -> Any:
        return self._send("KV/Range", request)

    def _transact(self, request: pb.TxnRequest) -> tuple[Any, bool]:
        """Send a transaction; return its response, and whether an earlier attempt may have succeeded."""
        attempts = 0

        def send(message: Any, timeout: float) -> Any:
            nonlocal attempts
            attempts += 1
            return self._open_endpoints().call("KV/Txn", message, timeout)

        reply = self._call(send, request, attempt_s=self._attempt_s)
        return reply, attempts > 1

    def _send(self, method: str, request: Any) -> Any:
        def send(message: Any, timeout: float) -> Any:
            return self._open_endpoints().call(method, message, timeout)

        return self._call(send, request, attempt_s=self._attempt_s)

    def _open_endpoints(self) -> Endpoints:
        if self._endpoints is None:
            raise MetadataStoreError(f"metadata store {self._name}: the driver is not started")
        return self._endpoints

    def _refusal(self, error: grpc.RpcError) -> BookKeeperError | None:
        text = error.details() or ""
        if error.code() in LOST_ANSWER or any(words in text for words in REPEATED):
            return None
        kind = REFUSALS.get(error.code(), MetadataStoreError)
        if any(words in text for words in TOO_LARGE):
            return IncorrectParameter(
                f"metadata store {self._name}: a value is larger than etcd accepts ({text}): "
                "raise --max-request-bytes of its members"
            )
        if NO_USER in text:
            return SecurityError(f"metadata store {self._name} requires a login: append ?user=NAME&password=FILE")
        return kind(f"metadata store {self._name}: {text}")

    # The session

    def _open_session(self) -> int:
        """Open a session, after ending the one before.

        A leader that was just elected may not know a lease, which then lives on, with a registration that would look
        like another process's, votes and locks.
        """
        if self._session != NO_SESSION:
            with suppress(SessionExpired):
                self._send("Lease/LeaseRevoke", pb.LeaseRevokeRequest(id=self._session))
        request = pb.LeaseGrantRequest(ttl=max(math.ceil(self._timeout_s), TTL_S_MIN))
        return int(self._send("Lease/LeaseGrant", request).id)

    def _keep_session(self) -> None:
        if time.monotonic() - self._heard > self._timeout_s / 2:
            self._end_stream()  # the thread of changes opens another one

        def send(message: Any, timeout: float) -> Any:
            return self._open_endpoints().exchange("Lease/LeaseKeepAlive", message, timeout)

        reply = self._call(send, pb.LeaseKeepAliveRequest(id=self._session), attempt_s=self._attempt_s)
        if reply.ttl <= 0:
            raise SessionExpired(f"metadata store {self._name}: the lease has expired")

    # Changes

    def _follow(self) -> None:
        ended = False
        while (opened := self._open_stream()) is not None:
            stream, channel = opened
            try:
                for response in stream:
                    self._heard = time.monotonic()
                    if ended:  # before anybody looks at what the store says now
                        ended = False
                        self._interrupted()
                    if not self._take(response):
                        break
                else:
                    ended = True
                    self._stopping.wait(RETRY_S)
            except grpc.RpcError as error:
                self._open_endpoints().failed(channel, error)
                ended = True
                if not self._stopping.wait(RETRY_S):
                    log.info("stream of changes ended target=%s error=%s", self._name, error.details())
            finally:
                self._end_stream()

    def _end_stream(self) -> None:
        with self._lock:
            self._stream_ended.set()
            stream = self._stream
        if stream is not None:
            stream.cancel()

    def _take(self, response: Any) -> bool:
        """Tell the watchers of a response, and return whether the stream goes on."""
        if response.canceled:
            log.info(
                "etcd ended the watch target=%s reason=%s compacted=%d",
                self._name, response.cancel_reason, response.compact_revision,
            )  # fmt: skip
            self._open_endpoints().refused(response.cancel_reason)
            if response.compact_revision > self._seen:
                self._seen = max(response.header.revision, response.compact_revision)
                self._watchers.tell([""])
            else:
                self._stopping.wait(RETRY_S)
            return False
        if response.events:
            self._watchers.tell(dict.fromkeys(self._short(event.kv.key) for event in response.events))
            if not response.fragment:  # else further events of the last revision follow
                self._seen = max(event.kv.mod_revision for event in response.events)
        elif not response.created and response.watch_id >= 0:  # up to this revision, everything was sent
            self._seen = max(self._seen, response.header.revision)
        return True

    def _open_stream(self) -> Any:
        """Open the watch, or return None when stopping, since `stop` must know every open stream."""
        below = self._below.encode()
        create = pb.WatchCreateRequest(
            key=below, range_end=_end(below), start_revision=self._seen + 1, progress_notify=True, fragment=True
        )
        while not self._stopping.is_set():
            try:
                requests = _requests(create, self._timeout_s / SIGNS_PER_TTL, now_ended := threading.Event())
                opened = self._open_endpoints().open("Watch/Watch", requests, self._attempt_s)
            except (grpc.RpcError, ValueError, BookKeeperError) as error:  # of the login, or of a channel that was cut
                log.info("cannot watch changes target=%s error=%s", self._name, error)
                self._stopping.wait(RETRY_S)
                continue
            with self._lock:
                if self._stopping.is_set():
                    opened[0].cancel()
                    return None
                self._stream, self._stream_ended = opened[0], now_ended
                self._heard = time.monotonic()
            return opened
        return None


def _requests(create: Any, every_s: float, ended: threading.Event) -> Iterator[Any]:
    """Yield the request for a watch, then requests for a sign of life until `ended`. Runs on a thread of gRPC."""
    yield pb.WatchRequest(create_request=create)
    while not ended.wait(every_s):
        yield pb.WatchRequest(progress_request=pb.WatchProgressRequest())


def _item(found: Any) -> Item:
    return Item(found.value, found.mod_revision, 0, found.lease)


def _end(prefix: bytes) -> bytes:
    """Return the first key after all keys with this prefix, whose last byte is not 255 since it is of UTF-8."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


def _created_at(key: bytes, revision: int) -> Any:
    return pb.Compare(key=key, target=pb.Compare.CREATE, result=pb.Compare.EQUAL, create_revision=revision)


def _changed_at(key: bytes, revision: int) -> Any:
    return pb.Compare(key=key, target=pb.Compare.MOD, result=pb.Compare.EQUAL, mod_revision=revision)


def _revision(reply: Any, index: int) -> int:
    """Return the revision of the key that the refused transaction read at `index`, or 0 if it does not exist."""
    found = reply.responses[index].response_range.kvs
    return int(found[0].mod_revision) if found else 0


def _read(key: bytes) -> Any:
    return pb.RequestOp(request_range=pb.RangeRequest(key=key))


def _found(reply: Any) -> Any | None:
    """Return the key that a refused transaction read, or None if it does not exist."""
    found = reply.responses[0].response_range.kvs
    return found[0] if found else None
