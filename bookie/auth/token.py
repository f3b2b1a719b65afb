"""A shared secret: the client sends it, the bookie compares it in constant time. For TLS or private networks only.

The secret comes from a file (one token a line, so that an old and a new one can be valid together; `#` starts a
comment) or from the environment variable `BOOKIE_AUTH_TOKEN`.
"""

import hashlib
import hmac
import os
from collections.abc import Mapping

from bookie.auth.provider import AuthenticationFailed, Outcome
from bookie.auth.settings import AuthSettings, ClientAuthSettings
from bookie.errors import ConfigurationError
from bookie.secret_files import SecretRefused, read_secret_text

__all__ = ["client", "PLUGIN", "server", "TokenClient", "TokenServer"]

PLUGIN = "token"
VARIABLE = "BOOKIE_AUTH_TOKEN"
TOKEN_BYTES_MIN = 16
TOKEN_BYTES_MAX = 4096
PRINCIPAL = "token"


def read_tokens(path: str, environment: Mapping[str, str], *, strict: bool) -> tuple[bytes, ...]:
    """The tokens of the file, or of the environment where no file is named. Raises ConfigurationError."""
    where = f"authTokenFile={path}" if path else f"environment variable {VARIABLE}"
    try:
        text = read_secret_text(path, strict=strict) if path else environment.get(VARIABLE, "")
    except SecretRefused as refused:
        raise ConfigurationError(f"{where}: {refused}") from None
    lines = [line.strip() for line in text.splitlines()]
    tokens = tuple(line.encode() for line in lines if line and not line.startswith("#"))
    if not tokens:
        raise ConfigurationError(f"{where}: there is no token; put one of {TOKEN_BYTES_MIN} bytes or more there")
    if not all(TOKEN_BYTES_MIN <= len(token) <= TOKEN_BYTES_MAX for token in tokens):
        limits = f"{TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} bytes"
        raise ConfigurationError(f"{where}: a token is too short or too long; use {limits}")
    return tokens


def server(settings: AuthSettings) -> "TokenServer":
    """The bookie's provider. Raises ConfigurationError."""
    return TokenServer(read_tokens(settings.token_file, os.environ, strict=True))


def client(settings: ClientAuthSettings) -> "TokenClient":
    """The client's provider; of several tokens the first is sent. Raises ConfigurationError."""
    return TokenClient(read_tokens(settings.token_file, os.environ, strict=False)[0])


def digest(token: bytes) -> bytes:
    """Equal lengths for the comparison, whatever was sent."""
    return hashlib.sha256(token).digest()


class TokenServer:
    """Lets in who knows one of `tokens`."""

    plugin_name = PLUGIN
    challenges = False

    def __init__(self, tokens: tuple[bytes, ...]) -> None:
        self._digests = tuple(map(digest, tokens))

    def __repr__(self) -> str:
        return f"TokenServer({len(self._digests)} tokens)"

    def session(self, peer: str) -> "TokenServer":  # noqa: ARG002 - there is nothing to remember between messages
        """Stateless: one message decides."""
        return self

    def process(self, token: bytes) -> Outcome:
        """Every token is compared, also after a match."""
        sent = digest(token)
        matches = [hmac.compare_digest(sent, known) for known in self._digests]
        if not any(matches):
            raise AuthenticationFailed("the token is not one of this bookie's")
        return Outcome(b"", PRINCIPAL)

    def upgraded(self, certificate: bytes | None) -> Outcome:  # noqa: ARG002
        """Encryption alone proves nothing here."""
        return Outcome()


class TokenClient:
    """Sends `token` and is content when the bookie accepts it."""

    plugin_name = PLUGIN

    def __init__(self, token: bytes) -> None:
        self._token = token

    def __repr__(self) -> str:
        return "TokenClient(...)"

    def session(self, host: str) -> "TokenClientSession":  # noqa: ARG002
        """For a new connection."""
        return TokenClientSession(self._token)


class TokenClientSession:
    """One message there, one back."""

    def __init__(self, token: bytes) -> None:
        self._token = token
        self.done = False

    def first(self) -> bytes:
        """The token."""
        return self._token

    def answer(self, token: bytes) -> None:  # noqa: ARG002
        """The bookie answered at all: it accepted."""
        self.done = True
