"""The way to an admin port: a gRPC channel, encrypted and with a token where the port asks for them.

Any thread. Files are PEM; the token's file is read at each call, so that it may change. A line `role:token` or
`role:name:token` of a bookie's own file counts as its token, the first one of `operate` before others.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from bookie.errors import ConfigurationError
from bookie.secret_files import SecretRefused, read_secret

__all__ = ["AdminAccess", "BUSY", "open_channel", "read_token"]

BUSY = ("bookie-busy", "1")
"""Trailing metadata of RESOURCE_EXHAUSTED where nothing was done: ask again."""

OPERATE = "operate:"


@dataclass(frozen=True, slots=True)
class AdminAccess:
    """Paths; None: not used. `authorities` None: the system's, where the channel is encrypted."""

    encrypted: bool = False
    authorities: str | None = None
    certificate: str | None = None
    key: str | None = None
    token_file: str | None = None


def open_channel(target: str, access: AdminAccess, options: Sequence[tuple[str, object]] = ()) -> Any:
    """A channel to host:port. ConfigurationError names the file that cannot be used."""
    options = (*options, ("grpc.enable_http_proxy", 0))
    if access.encrypted:
        credentials = grpc.ssl_channel_credentials(
            _read("TLS authorities", access.authorities),
            _read_secret("TLS key", access.key),
            _read("TLS certificate", access.certificate),
        )
        channel = grpc.secure_channel(target, credentials, options=options)
    else:
        channel = grpc.insecure_channel(target, options=options)
    if access.token_file is None:
        return channel
    return grpc.intercept_channel(channel, _SendToken(access.token_file))


def read_token(path: str) -> str:
    """What is sent. ConfigurationError."""
    lines = [line.strip() for line in (_read_secret("token", path) or b"").decode("utf-8", "replace").splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    if not lines:
        raise ConfigurationError(f"token file {path}: there is no token in it; write one line with the token")
    token = next((line for line in lines if line.startswith(OPERATE)), lines[0]).rpartition(":")[2]
    if not (token.isascii() and token.isprintable()):
        raise ConfigurationError(f"token file {path}: it holds bytes that no request can carry; name a file of text")
    return token


def _read(what: str, path: str | None) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{what} file {path}: {error.strerror}; name one that can be read") from None


def _read_secret(what: str, path: str | None) -> bytes | None:
    if path is None:
        return None
    try:
        return read_secret(path, strict=False)
    except SecretRefused as refused:
        raise ConfigurationError(f"{what} file {path}: {refused}") from None


class _Details(NamedTuple):
    method: str
    timeout: float | None
    metadata: Sequence[tuple[str, str]]
    credentials: Any
    wait_for_ready: bool | None
    compression: Any


class _SendToken(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):  # type: ignore[misc]
    """Adds the token to each call: that of the file, or the last one that was there."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._token = read_token(path)

    def intercept_unary_unary(self, call: Callable[[Any, Any], Any], details: Any, request: Any) -> Any:
        return call(self._with_token(details), request)

    def intercept_unary_stream(self, call: Callable[[Any, Any], Any], details: Any, request: Any) -> Any:
        return call(self._with_token(details), request)

    def _with_token(self, details: Any) -> _Details:
        with contextlib.suppress(ConfigurationError):
            self._token = read_token(self._path)
        header = ("authorization", f"Bearer {self._token}")
        return _Details(
            details.method,
            details.timeout,
            [*(details.metadata or ()), header],
            details.credentials,
            details.wait_for_ready,
            details.compression,
        )
