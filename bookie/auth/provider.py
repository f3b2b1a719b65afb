"""What an authentication provider is, on the bookie's side and on the client's. Types only, and the one error.

Tokens are opaque bytes that the two providers exchange in AUTH messages. The client speaks first, unless the provider
is satisfied by something else (a TLS certificate). Sessions are used by one thread at a time, providers by any.
"""

import enum
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from bookie.errors import UnauthorizedAccess

__all__ = [
    "AuthenticationFailed",
    "ClientProvider",
    "ClientSession",
    "EVERYTHING",
    "Outcome",
    "RereadProvider",
    "Right",
    "ServerProvider",
    "ServerSession",
]


class AuthenticationFailed(UnauthorizedAccess):
    """The other side is not who it must be. The text says why, without anything that the other side sent."""


class Right(enum.IntFlag):
    """What a client may ask of a bookie, as bits of the compiled module `server.users`."""

    READ = 1
    """Entries, LACs, long polls, and how much room there is."""
    WRITE = 2
    """Adds, those of a recovery too, fences, explicit LACs, syncs."""
    ADMIN = 4
    """Which entries of a ledger are stored, and whatever else there will be."""


EVERYTHING = Right.READ | Right.WRITE | Right.ADMIN


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step of a server session led to."""

    token: bytes | None = None
    """For the client; None: say nothing."""
    principal: str | None = None
    """Who the client is, once it is authenticated; None: not yet. Logs and metrics name it."""
    reason: str | None = None
    """Why the client is not let in although its connection may go on; for the log."""
    rights: Right = EVERYTHING
    credential: bytes = field(default=b"", repr=False)
    """By which `RereadProvider.knows` finds again what let the client in; nothing that lets anybody in."""


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


@runtime_checkable
class RereadProvider(ServerProvider, Protocol):
    """A bookie's provider whose files may change. `refresh` is called by one thread, `knows` by any."""

    def refresh(self) -> bool:
        """Read files that have changed; True: what it knows is another than before. What cannot be used is logged."""

    def knows(self, outcome: Outcome) -> bool:
        """Whether a client who was let in so would be let in with the same rights now."""


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
