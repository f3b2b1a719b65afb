"""A shared secret: the client sends it, the bookie compares it in constant time. For TLS or private networks only.

Where it comes from: `token_file`. Several can be valid together, an old and a new one, or one for each client.
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
    """The bookie's provider, which looks at its file again. Raises ConfigurationError."""
    path = settings.token_file
    source = Reread(path, lambda: read_tokens(path, os.environ, strict=True))
    return TokenServer(source.now, source)


def client(settings: ClientAuthSettings) -> "TokenClient":
    """The client's provider; of several tokens the first is sent. Raises ConfigurationError."""
    return TokenClient(read_tokens(settings.token_file, os.environ, strict=False)[0].secret)


def digest(token: bytes) -> bytes:
    """Equal lengths for the comparison, whatever was sent."""
    return hashlib.sha256(token).digest()


@dataclass(frozen=True, slots=True)
class _Known:
    digest: bytes
    outcome: Outcome


class TokenServer:
    """Lets in who knows one of `tokens`, which are Tokens, or bytes that are good for everything.

    With a `source` it looks there again: those who hold a token that is not there any more are not known.
    """

    plugin_name = PLUGIN
    challenges = False

    def __init__(self, tokens: Iterable[Token | bytes], source: Reread[tuple[Token, ...]] | None = None) -> None:
        self._known = _known(tokens)  # replaced as a whole
        self._source = source

    def __repr__(self) -> str:
        return f"TokenServer({len(self._known)} tokens)"

    def session(self, peer: str) -> "TokenServer":  # noqa: ARG002 - there is nothing to remember between messages
        """Stateless: one message decides."""
        return self

    def process(self, token: bytes) -> Outcome:
        """Every token is compared, also after a match."""
        sent = digest(token)
        found = [known.outcome for known in self._known if hmac.compare_digest(sent, known.digest)]
        if not found:
            raise AuthenticationFailed("the token is not one of this bookie's")
        return found[0]

    def upgraded(self, certificate: bytes | None) -> Outcome:  # noqa: ARG002
        """Encryption alone proves nothing here."""
        return Outcome()

    def refresh(self) -> bool:
        """Read the file if it has changed."""
        if self._source is None or not self._source.refresh():
            return False
        self._known = _known(self._source.now)
        return True

    def knows(self, outcome: Outcome) -> bool:
        """By the digest of the token: a line that has moved is the same token, whatever it is called now."""
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
