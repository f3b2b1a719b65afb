"""The interface of an authentication provider, on the bookie's side and on the client's: types, and one error.

Tokens are opaque bytes that the two providers exchange in AUTH messages. The client speaks first, unless something
else, such as a TLS certificate, satisfies the provider. A session is used by one thread at a time; a provider may be
used by any thread.
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
    """The other side did not prove its identity. The text says why, without anything that the other side sent."""


class Right(enum.IntFlag):
    """What a client may request from a bookie, as bits of the compiled module `server.users`."""

    READ = 1
    """Reads of entries and LACs, long polls, and queries of free space."""
    WRITE = 2
    """Adds, including recovery adds, fences, explicit LACs, and forces."""
    ADMIN = 4
    """Lists of the stored entries of a ledger, and all other requests."""


EVERYTHING = Right.READ | Right.WRITE | Right.ADMIN


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one step of a server session."""

    token: bytes | None = None
    """The token to send to the client; None sends nothing."""
    principal: str | None = None
    """The client's identity once it is authenticated, None before. It appears in logs and metrics."""
    reason: str | None = None
    """Why the client is not authenticated although its connection may continue; for the log."""
    rights: Right = EVERYTHING
    credential: bytes = field(default=b"", repr=False)
    """With this, `RereadProvider.knows` recognizes what authenticated the client. It cannot be used to authenticate."""


class ServerSession(Protocol):
    """The authentication of one connection. Both methods raise AuthenticationFailed, which ends the connection."""

    def process(self, token: bytes) -> Outcome:
        """Process a token from the client."""

    def upgraded(self, certificate: bytes | None) -> Outcome:
        """Handle the start of encryption. `certificate` (DER) is the client's, already verified, or None."""


class ServerProvider(Protocol):
    """The provider of a bookie."""

    @property
    def plugin_name(self) -> str:
        """The name by which clients must ask for it."""

    @property
    def challenges(self) -> bool:
        """Whether clients prove their identity by answering a challenge of this connection.

        Such a proof stays valid after START_TLS even if it was sent in the clear, as Apache BookKeeper's clients may
        do. A secret sent as it is does not, because anyone who saw it may have sent it.
        """

    def session(self, peer: str) -> ServerSession:
        """Return a session for a new connection from `peer` (host:port)."""


@runtime_checkable
class RereadProvider(ServerProvider, Protocol):
    """A bookie's provider whose files may change. One thread calls `refresh`, any thread `knows`."""

    def refresh(self) -> bool:
        """Read changed files, and return whether their contents differ. Files that cannot be used are logged."""

    def knows(self, outcome: Outcome) -> bool:
        """Return whether a client that was authenticated with this outcome would get the same rights now."""


class ClientSession(Protocol):
    """The client's side of one connection. Its methods raise AuthenticationFailed."""

    @property
    def done(self) -> bool:
        """Whether the client's side has nothing more to verify."""

    def first(self) -> bytes | None:
        """Return the first token to send; None if the connection itself authenticates the client."""

    def answer(self, token: bytes) -> bytes | None:
        """Return the answer to the bookie's token, or None."""


class ClientProvider(Protocol):
    """The provider of a client."""

    @property
    def plugin_name(self) -> str:
        """The name that bookies know it by."""

    def session(self, host: str) -> ClientSession:
        """Return a session for a new connection to a bookie at `host`."""
