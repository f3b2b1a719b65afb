"""Calls to the members of an etcd cluster, one member at a time. Any thread.

A call that a member does not answer makes the next call go to the next member. With a user, a token is fetched by the
first call, and again when etcd no longer accepts it. Files of certificates that have changed are read again after a
call without an answer, since a member may then demand the new ones.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import grpc

from bookie.admin_port.channel import tls_credentials
from bookie.changed_files import ChangedFiles
from bookie.errors import ConfigurationError, MetadataStoreError, SecurityError
from bookie.metadata.key_value.connected import LOST_ANSWER
from bookie.metadata.key_value.keys import VALUE_BYTES_MAX
from bookie.pb import etcd_pb2 as pb
from bookie.secret_files import SecretRefused, read_secret

__all__ = ["AskedKeys", "Endpoints", "EtcdAccess", "SentCall", "STALE_TOKEN"]

CHANNEL_OPTIONS = [
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.max_receive_message_length", 16 * VALUE_BYTES_MAX),
    ("grpc.enable_http_proxy", 0),
]
STALE_TOKEN = ("invalid auth token", "revision of auth store is old")
"""What etcd says of a token that expired, or was made before users or roles changed."""
RESPONSES: dict[str, Any] = {
    "KV/Range": pb.RangeResponse,
    "KV/Txn": pb.TxnResponse,
    "KV/Compact": pb.CompactionResponse,
    "Lease/LeaseGrant": pb.LeaseGrantResponse,
    "Lease/LeaseRevoke": pb.LeaseRevokeResponse,
    "Lease/LeaseKeepAlive": pb.LeaseKeepAliveResponse,
    "Watch/Watch": pb.WatchResponse,
    "Auth/Authenticate": pb.AuthenticateResponse,
}
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EtcdAccess:
    """How to connect to etcd.

    Attributes:
        encrypted: Use TLS.
        authorities: Path of the CA certificates to trust; None: those of the system.
        certificate: Path of the client's certificate, or None.
        key: Path of its private key, or None.
        user: Name of the etcd user, or None.
        password_file: Path of a file with the user's password, or None.
    """

    encrypted: bool = False
    authorities: str | None = None
    certificate: str | None = None
    key: str | None = None
    user: str | None = None
    password_file: str | None = None


class SentCall:
    """A call that was sent, on a channel of `endpoints`."""

    def __init__(self, endpoints: "Endpoints", channel: Any, future: Any) -> None:
        self._endpoints, self._channel, self._future = endpoints, channel, future

    def response(self) -> Any:
        """Wait for the response. Raises grpc.RpcError if the member refused, or did not answer."""
        try:
            return self._future.result()
        except grpc.RpcError as error:
            self._endpoints.failed(self._channel, error)
            raise

    def cancel(self) -> None:
        """Do without the response, of which `response` must not be called."""
        self._future.cancel()


class AskedKeys:
    """Keys that were asked for. A request that was sent and had no answer is sent again, as any other call is."""

    def __init__(self, call: Callable[[], Any], sent: SentCall | None) -> None:
        self._call, self._sent = call, sent

    def keys(self) -> tuple[list[bytes], int]:
        """Return the keys, and how many are in the range."""
        reply = None
        if self._sent is not None:
            with suppress(grpc.RpcError):
                reply = self._sent.response()
        if reply is None:
            reply = self._call()
        return [found.key for found in reply.kvs], int(reply.count)

    def cancel(self) -> None:
        """Do without the answer."""
        if self._sent is not None:
            self._sent.cancel()


class Endpoints:
    """The members at `hosts` (host:port). Raises ConfigurationError if a file of `access` cannot be read."""

    def __init__(self, hosts: tuple[str, ...], access: EtcdAccess) -> None:
        self._hosts, self._access = hosts, access
        self._files = ChangedFiles(*(path or "" for path in (access.authorities, access.certificate, access.key)))
        self._channels = self._opened()
        self._stubs: dict[tuple[Any, str], Any] = {}
        self._lock = threading.Lock()
        # The fields below, _channels and _files are guarded by _lock.
        self._at = 0
        self._token = ""

    def call(self, method: str, request: Any, timeout: float) -> Any:
        """Call a method with one response, such as `KV/Range`.

        Args:
            method: Service and method, without etcd's package.
            request: The message.
            timeout: Seconds.

        Raises:
            grpc.RpcError: The member refused, or did not answer.
            SecurityError: The login was refused.
        """
        channel = self._present()
        try:
            return self._stub(channel, channel.unary_unary, method)(
                request, timeout=timeout, metadata=self._metadata(timeout)
            )
        except grpc.RpcError as error:
            self.failed(channel, error)
            raise

    def begin(self, method: str, request: Any, timeout: float) -> "SentCall":
        """Send what `call` would send, without waiting for the response. Raises as `call` does if a login fails."""
        channel = self._present()
        stub = self._stub(channel, channel.unary_unary, method)
        return SentCall(self, channel, stub.future(request, timeout=timeout, metadata=self._metadata(timeout)))

    def exchange(self, method: str, request: Any, timeout: float) -> Any:
        """Call a method of two streams with one request, and return the first response.

        Raises as `call` does, and MetadataStoreError if the member ends the stream without a response.
        """
        channel = self._present()
        stream = self._stub(channel, channel.stream_stream, method)(
            iter([request]), timeout=timeout, metadata=self._metadata(timeout)
        )
        try:
            for response in stream:
                return response
        except grpc.RpcError as error:
            self.failed(channel, error)
            raise
        finally:
            stream.cancel()
        raise MetadataStoreError(f"etcd ended a call of {method} without a response: try again")

    def open(self, method: str, requests: Iterator[Any], timeout: float) -> tuple[Any, Any]:
        """Open two streams without end, and return that of the responses with the channel that `failed` takes.

        `timeout` is for the login. A member that has lost the leader ends the streams. A member that hangs does not:
        the caller sends requests that are answered, and cancels the stream when it has heard nothing. (HTTP/2 pings
        are no help, because etcd closes connections that send more than one in 5 s, and gRPC then sends fewer.)
        """
        channel = self._present()
        metadata = (*self._metadata(timeout), ("hasleader", "true"))
        return self._stub(channel, channel.stream_stream, method)(requests, metadata=metadata), channel

    def failed(self, channel: Any, error: grpc.RpcError) -> None:
        """Note that a call on this channel failed, so that the next call does better."""
        if error.code() in LOST_ANSWER:
            with self._lock:
                if self._channels[self._at] is channel:
                    self._at = (self._at + 1) % len(self._channels)
                if self._access.encrypted and self._files.changed():
                    self._read_again()
        self.refused(error.details() or "")

    def refused(self, why: str) -> None:
        """Forget the token if that is what etcd says is wrong."""
        if any(text in why for text in STALE_TOKEN):
            with self._lock:
                self._token = ""

    def cut(self) -> None:
        """End all calls and streams under way, as if the connections were lost; further ones get new connections."""
        with self._lock:
            ended = self._channels
            self._open_again()
        for channel in ended:
            channel.close()

    def close(self) -> None:
        """Close all connections."""
        for channel in self._channels:
            channel.close()

    def _opened(self) -> list[Any]:
        """Return a channel to each member, with the certificates that the files contain now."""
        access = self._access
        if not access.encrypted:
            return [grpc.insecure_channel(host, options=CHANNEL_OPTIONS) for host in self._hosts]
        credentials = tls_credentials(access.authorities, access.certificate, access.key)
        return [grpc.secure_channel(host, credentials, options=CHANNEL_OPTIONS) for host in self._hosts]

    def _read_again(self) -> None:
        if self._open_again():
            log.info("read the files for TLS again target=%s", ",".join(self._hosts))

    def _open_again(self) -> bool:
        """Replace the channels, and return whether that was done. Calls that are under way end on the channels before,
        which end with the last call.
        """
        try:
            self._channels = self._opened()
        except ConfigurationError as error:  # a file is being replaced, which is the next change
            log.warning("cannot read the files for TLS again target=%s error=%s", ",".join(self._hosts), error)
            return False
        self._stubs = {}
        return True

    def _present(self) -> Any:
        with self._lock:
            return self._channels[self._at]

    def _stub(self, channel: Any, kind: Any, method: str) -> Any:
        """Return the callable of a method. Two threads may make it at the same time, and either one stays."""
        found = self._stubs.get((channel, method))
        if found is None:
            found = self._stubs[channel, method] = kind(
                f"/etcdserverpb.{method}",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=RESPONSES[method].FromString,
            )
        return found

    def _metadata(self, timeout: float) -> tuple[tuple[str, str], ...]:
        """Return the metadata of a call, after a login if there is no token."""
        if self._access.user is None:
            return ()
        with self._lock:
            token = self._token
        if not token:
            token = self._log_in(timeout)
            with self._lock:
                self._token = token
        return (("token", token),)

    def _log_in(self, timeout: float) -> str:
        channel = self._present()
        request = pb.AuthenticateRequest(name=self._access.user, password=self._password())
        try:
            reply = self._stub(channel, channel.unary_unary, "Auth/Authenticate")(request, timeout=timeout)
        except grpc.RpcError as error:
            self.failed(channel, error)
            if error.code() in LOST_ANSWER:
                raise
            raise SecurityError(f"etcd refuses the user {self._access.user!r}: {error.details()}") from None
        return str(reply.token)

    def _password(self) -> str:
        path = self._access.password_file
        if path is None:
            return ""
        try:
            return read_secret(path, strict=False).decode("utf-8", "replace").strip("\r\n")
        except SecretRefused as refused:
            raise ConfigurationError(f"password file {path}: {refused}") from None
