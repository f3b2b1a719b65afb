"""Authentication by a shared secret, which the client sends and the bookie compares in constant time. Use it only
with TLS or on private networks.

The module `token_file` reads the tokens. Several can be valid at a time, for example an old and a new one, or one for
each client.
"""

import hashlib
import hmac
import os
from collections.abc import Iterable
from dataclasses import dataclass

from bookie.auth.provider import EVERYTHING, AuthenticationFailed, Outcome
from bookie.auth.reread import Reread
from bookie.auth.settings import AuthSettings, ClientAuthSettings
from bookie.auth.token_file import Token, read_tokens

__all__ = ["client", "PLUGIN", "server", "TokenClient", "TokenServer"]

PLUGIN = "token"


def server(settings: AuthSettings) -> "TokenServer":
    """Return the bookie's provider, which reads its file again when it changes. Raises ConfigurationError."""
    path = settings.token_file
    source = Reread(path, lambda: read_tokens(path, os.environ, strict=True))
    return TokenServer(source.now, source)


def client(settings: ClientAuthSettings) -> "TokenClient":
    """Return the client's provider, which sends the first of several tokens. Raises ConfigurationError."""
    return TokenClient(read_tokens(settings.token_file, os.environ, strict=False)[0].secret)


def digest(token: bytes) -> bytes:
    """Hash a token, so that the compared values have equal lengths whatever was sent."""
    return hashlib.sha256(token).digest()


@dataclass(frozen=True, slots=True)
class _Known:
    digest: bytes
    outcome: Outcome


class TokenServer:
    """Accepts clients that send one of `tokens`, which are Tokens, or bytes that grant every right.

    With a `source`, the tokens are read again when the file changes, and clients with a removed token are no longer
    known.
    """

    plugin_name = PLUGIN
    challenges = False

    def __init__(self, tokens: Iterable[Token | bytes], source: Reread[tuple[Token, ...]] | None = None) -> None:
        self._known = _known(tokens)  # replaced as a whole
        self._source = source

    def __repr__(self) -> str:
        return f"TokenServer({len(self._known)} tokens)"

    def session(self, peer: str) -> "TokenServer":  # noqa: ARG002 - there is nothing to remember between messages
        """Return itself: the provider is stateless, because one message decides."""
        return self

    def process(self, token: bytes) -> Outcome:
        """Compare with every token, even after a match, so that the time does not tell which one matched."""
        sent = digest(token)
        found = [known.outcome for known in self._known if hmac.compare_digest(sent, known.digest)]
        if not found:
            raise AuthenticationFailed("the token is not one of this bookie's tokens")
        return found[0]

    def upgraded(self, certificate: bytes | None) -> Outcome:  # noqa: ARG002
        """Return no identity: encryption alone proves nothing to this provider."""
        return Outcome()

    def refresh(self) -> bool:
        """Read the file if it has changed."""
        if self._source is None or not self._source.refresh():
            return False
        self._known = _known(self._source.now)
        return True

    def knows(self, outcome: Outcome) -> bool:
        """Compare by the digest: a token whose line has moved is the same token, whatever its name is now."""
        same = (known.outcome.rights for known in self._known if known.digest == outcome.credential)
        return next(same, None) == outcome.rights


def _known(tokens: Iterable[Token | bytes]) -> tuple[_Known, ...]:
    rows = [
        token if isinstance(token, Token) else Token(f"line-{number}", EVERYTHING, token)
        for number, token in enumerate(tokens, 1)
    ]
    digests = [(digest(row.secret), row) for row in rows]
    return tuple(
        _Known(proof, Outcome(b"", f"token:{row.name}", rights=row.rights, credential=proof)) for proof, row in digests
    )


class TokenClient:
    """Sends `token`; any answer of the bookie means success."""

    plugin_name = PLUGIN

    def __init__(self, token: bytes) -> None:
        self._token = token

    def __repr__(self) -> str:
        return "TokenClient(...)"

    def session(self, host: str) -> "TokenClientSession":  # noqa: ARG002
        """Return a session for a new connection."""
        return TokenClientSession(self._token)


class TokenClientSession:
    """One login: one message in each direction."""

    def __init__(self, token: bytes) -> None:
        self._token = token
        self.done = False

    def first(self) -> bytes:
        """Return the token."""
        return self._token

    def answer(self, token: bytes) -> None:  # noqa: ARG002
        """Accept any answer, because a bookie answers only if it accepted the token."""
        self.done = True
