"""A task as the compiled room `policy` hands it to Python, and what was answered; for handlers without a socket."""

from dataclasses import dataclass, field

from bookie._fast import policy
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

    @property
    def answered(self) -> bool:
        """Once is enough."""
        return bool(self.answers)

    def answer(self, body: bytes, action: int) -> None:
        """Note it."""
        self.answers.append((body, action))
