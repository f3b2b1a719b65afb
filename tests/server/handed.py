"""A task as the compiled module `server.policy` hands it to Python, and what was answered; for handlers without a
socket.
"""

from dataclasses import dataclass, field

from bookie._fast.server import policy, users
from bookie._fast.server.users import AuthenticatedUser
from bookie.pb import wire_pb2 as wire


@dataclass
class Handed:
    """One request or event of connection `session`."""

    frame: bytes
    protocol: int = 3
    session: int = 1
    peer: str = "192.0.2.1:4000"
    kind: int = policy.REQUEST
    operation: int = wire.AUTH
    answers: list[tuple[bytes, int]] = field(default_factory=list)
    user: AuthenticatedUser | None = None

    @property
    def answered(self) -> bool:
        """Once is enough."""
        return bool(self.answers)

    def answer(self, body: bytes, action: int, user: AuthenticatedUser | None = None, may: int = users.ALL) -> None:
        """Note it, and who was let in; what that one may do is a matter of tests over sockets."""
        assert (action == policy.AUTHENTICATED) == (user is not None)
        assert 0 < may <= users.ALL
        self.answers.append((body, action))
        self.user = user
