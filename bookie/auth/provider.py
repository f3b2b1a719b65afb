"""What an authentication provider is, on the bookie's side and on the client's. Types only, and the one error.

Tokens are opaque bytes that the two providers exchange in AUTH messages. The client speaks first, unless the provider
is satisfied by something else (a TLS certificate). Sessions are used by one thread at a time, providers by any.
"""

from dataclasses import dataclass
from typing import Protocol

from bookie.errors import UnauthorizedAccess

__all__ = ["AuthenticationFailed", "ClientProvider", "ClientSession", "Outcome", "ServerProvider", "ServerSession"]


class AuthenticationFailed(UnauthorizedAccess):
    """The other side is not who it must be. The text says why, without anything that the other side sent."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step of a server session led to."""

    token: bytes | None = None
    """For the client; None: say nothing."""
    principal: str | None = None
    """Who the client is, once it is authenticated; None: not yet."""
    reason: str | None = None
    """Why the client is not let in although its connection may go on; for the log."""


class ServerSession(Protocol):
    """One connection's authentication. Both methods raise AuthenticationFailed, which ends the connection."""

    def process(self, token: bytes) -> Outcome:
        """The client sent this."""

    def upgraded(self, certificate: bytes | None) -> Outcome:
        """The connection is encrypted from here on; `certificate` (DER) is the client's, already verified."""


class ServerProvider(Protocol):
    """A bookie's provider."""

    @property
    def plugin_name(self) -> str:
        """What clients must call it."""

    @property
    def challenges(self) -> bool:
        """Whether clients prove themselves by an answer to a challenge of this connection.

        Such a proof counts behind START_TLS though it came in clear, as Apache BookKeeper's clients may send it. A
        secret that is shown as it is does not: whoever saw it may have sent it.
        """

    def session(self, peer: str) -> ServerSession:
        """For a new connection from `peer` (host:port)."""


class ClientSession(Protocol):
    """The client's side of one connection. Raises AuthenticationFailed."""

    @property
    def done(self) -> bool:
        """Whether this side is satisfied."""

    def first(self) -> bytes | None:
        """What to send first; None: nothing, the connection itself convinces the bookie."""

    def answer(self, token: bytes) -> bytes | None:
        """What to answer to the bookie's token; None: nothing."""


class ClientProvider(Protocol):
    """A client's provider."""

    @property
    def plugin_name(self) -> str:
        """What bookies call it."""

    def session(self, host: str) -> ClientSession:
        """For a new connection to a bookie at `host`."""
