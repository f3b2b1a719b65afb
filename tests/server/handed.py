"""A task as the compiled module `server.policy` passes it to Python, with its response, for tests without sockets."""

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
        """Whether it was answered."""
        return bool(self.answers)

    def answer(self, body: bytes, action: int, user: AuthenticatedUser | None = None, may: int = users.ALL) -> None:
        """Record the response and the user. What that user may do is tested over sockets."""
        assert (action == policy.AUTHENTICATED) == (user is not None)
        assert 0 < may <= users.ALL
        self.answers.append((body, action))
        self.user = user
