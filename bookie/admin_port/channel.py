"""Opens a gRPC channel to an admin port, encrypted and with a token where the port requires them. Any thread.

Files are PEM. The token file is read at each call, so that it can change. In a bookie's file of tokens, with lines
`role:token` or `role:name:token`, the first token of the highest role is used. A caller without a token or certificate
uses the bookie's own token, if it runs as the same user on the same machine (`own_token`).
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from bookie.admin_port import own_token
from bookie.errors import ConfigurationError
from bookie.secret_files import SecretRefused, read_secret

__all__ = ["AdminAccess", "BUSY", "open_channel", "read_token", "ROLES", "tls_credentials", "TOLD"]

BUSY = ("bookie-busy", "1")
"""Trailing metadata of a RESOURCE_EXHAUSTED response that was refused without any effect, so that it is safe to
retry.
"""

TOLD = ("bookie-told", "1")
"""Trailing metadata of an UNAVAILABLE or DEADLINE_EXCEEDED response by which the bookie itself says what is out of
reach, such as its metadata store, or has not ended, such as a flush, so that the caller knows that the bookie answers.
"""

ROLES = ("admin", "operate", "read-data", "read", "metrics")
"""The roles as they are spelled in a file of tokens, highest first; `bookie_admin.roles` defines them."""


@dataclass(frozen=True, slots=True)
class AdminAccess:
    """How to connect to an admin port.

    Attributes:
        encrypted: use TLS.
        authorities: path of the CA certificates to trust; None: those of the system.
        certificate: path of the client certificate, or None.
        key: path of its private key, or None.
        token_file: path of a file with the token, or None.
    """

    encrypted: bool = False
    authorities: str | None = None
    certificate: str | None = None
    key: str | None = None
    token_file: str | None = None


def open_channel(target: str, access: AdminAccess, options: Sequence[tuple[str, object]] = ()) -> Any:
    """Open a channel to an admin port. The connection is made by the first call.

    Args:
        target: the address as host:port.
        access: encryption and credentials.
        options: further options of the gRPC channel.

    Returns:
        A `grpc.Channel`, which the caller closes.

    Raises:
        ConfigurationError: a file cannot be read or used, or holds no usable token.
    """
    options = (*options, ("grpc.enable_http_proxy", 0))
    if access.encrypted:
        credentials = tls_credentials(access.authorities, access.certificate, access.key)
        channel = grpc.secure_channel(target, credentials, options=options)
    else:
        channel = grpc.insecure_channel(target, options=options)
    channel = _Unregistered(channel)
    if access.token_file is None and access.certificate is not None:
        return channel  # the certificate identifies the caller
    return grpc.intercept_channel(channel, _SendToken(access.token_file, target))


def tls_credentials(authorities: str | None, certificate: str | None, key: str | None) -> Any:
    """Return the credentials of a channel with TLS, from paths of PEM files.

    Args:
        authorities: the CA certificates to trust; None: those of the system.
        certificate: the client's certificate, or None.
        key: its private key, or None.

    Returns:
        `grpc.ChannelCredentials`.

    Raises:
        ConfigurationError: a file cannot be read or used, or only one of certificate and key is named.
    """
    from bookie.admin_port import pem  # noqa: PLC0415  # most channels are not encrypted

    trusted = _read("TLS authorities", authorities)
    secret, own = _read_secret("TLS key", key), _read("TLS certificate", certificate)
    if trusted is not None:
        try:
            pem.check_authorities(trusted)
        except pem.UnusablePem as wrong:
            raise ConfigurationError(f"TLS authorities {authorities}: {wrong}; name another") from None
    if secret is not None or own is not None:
        try:
            pem.check_pair(own or b"", secret or b"")
        except pem.UnusablePem as wrong:
            raise ConfigurationError(
                f"TLS certificate file {certificate}, TLS key file {key}: {wrong}; name a certificate and its key"
            ) from None
    return grpc.ssl_channel_credentials(trusted, secret, own)


def read_token(path: str) -> str:
    """Return the token of a file.

    Args:
        path: the path of a file with one token, or of a bookie's file of tokens.

    Raises:
        ConfigurationError: the file cannot be read, or holds no usable token.
    """
    lines = [line.strip() for line in (_read_secret("token", path) or b"").decode("utf-8", "replace").splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    if not lines:
        raise ConfigurationError(f"token file {path}: it has no token; write a line with the token into it")
    highest = (line for role in ROLES for line in lines if line.startswith(f"{role}:"))
    token = next(highest, lines[0]).rpartition(":")[2]
    if not (token.isascii() and token.isprintable()):
        raise ConfigurationError(
            f"token file {path}: the token has characters that a request cannot carry; name a text file"
        )
    return token


def _read(what: str, path: str | None) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{what} file {path}: {error.strerror}; name a readable file") from None


def _read_secret(what: str, path: str | None) -> bytes | None:
    if path is None:
        return None
    try:
        return read_secret(path, strict=False)
    except SecretRefused as refused:
        raise ConfigurationError(f"{what} file {path}: {refused}") from None


class _Unregistered(grpc.Channel):  # type: ignore[misc]  # gRPC ships no types
    """A channel whose calls fail with a ValueError once it is closed, by whichever thread, as gRPC says.

    Generated stubs ask gRPC to register each method with the channel, which an intercepted channel does at each call,
    and the process crashes if the channel was closed (https://github.com/grpc/grpc/pull/43455). It is not asked here.
    """

    def __init__(self, channel: Any) -> None:
        self._channel = channel

    def subscribe(self, *how: Any, **more: Any) -> None:
        self._channel.subscribe(*how, **more)

    def unsubscribe(self, callback: Callable[[Any], None]) -> None:
        self._channel.unsubscribe(callback)

    def close(self) -> None:
        self._channel.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The methods below are called with the method's name, two functions that convert, and whether to register it.

    def unary_unary(self, *method: Any, _registered_method: bool = False, **how: Any) -> Any:
        return self._channel.unary_unary(*method[:3], **how)

    def unary_stream(self, *method: Any, _registered_method: bool = False, **how: Any) -> Any:
        return self._channel.unary_stream(*method[:3], **how)

    def stream_unary(self, *method: Any, _registered_method: bool = False, **how: Any) -> Any:
        return self._channel.stream_unary(*method[:3], **how)

    def stream_stream(self, *method: Any, _registered_method: bool = False, **how: Any) -> Any:
        return self._channel.stream_stream(*method[:3], **how)


class _Details(NamedTuple):
    method: str
    timeout: float | None
    metadata: Sequence[tuple[str, str]]
    credentials: Any
    wait_for_ready: bool | None
    compression: Any


class _SendToken(
    grpc.UnaryUnaryClientInterceptor,  # type: ignore[misc]  # gRPC ships no types
    grpc.UnaryStreamClientInterceptor,  # type: ignore[misc]
    grpc.StreamStreamClientInterceptor,  # type: ignore[misc]
):
    """Adds a token to each call: that of the named file (its last valid content), else the bookie's own."""

    def __init__(self, path: str | None, target: str) -> None:
        self._path = path
        self._guide = own_token.Guide(target)
        self._named = "" if path is None else read_token(path)

    def intercept_unary_unary(self, call: Callable[[Any, Any], Any], details: Any, request: Any) -> Any:
        token = self._token()
        outcome = call(_with(details, token), request)
        if not token and outcome.code() is grpc.StatusCode.UNAUTHENTICATED and (token := self._token()):
            return call(_with(details, token), request)  # the bookie was started after we looked for its token
        return outcome

    def intercept_unary_stream(self, call: Callable[[Any, Any], Any], details: Any, request: Any) -> Any:
        return call(_with(details, self._token()), request)

    def intercept_stream_stream(self, call: Callable[[Any, Any], Any], details: Any, requests: Any) -> Any:
        return call(_with(details, self._token()), requests)

    def _token(self) -> str:
        """Return the token, or "" if there is none."""
        if self._path is not None:
            with contextlib.suppress(ConfigurationError):
                self._named = read_token(self._path)
            return self._named
        found = self._guide.path()
        with contextlib.suppress(ConfigurationError):
            return read_token(found) if found else ""
        return ""


def _with(details: Any, token: str) -> _Details:
    header = [("authorization", f"Bearer {token}")] if token else []
    return _Details(
        details.method,
        details.timeout,
        [*(details.metadata or ()), *header],
        details.credentials,
        details.wait_for_ready,
        details.compression,
    )
