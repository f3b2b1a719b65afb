from typing import Final

from typing_extensions import Buffer

from bookie._fast.server.users import AuthenticatedUser

NOTHING: Final[int]
AUTHENTICATED: Final[int]
CLOSE: Final[int]
TURN_AWAY: Final[int]
REQUEST: Final[int]
UPGRADED: Final[int]
CLOSED: Final[int]
CLEAR: Final[int]
UPGRADED_KNOWN: Final[int]
LOGINS: Final[int]
REQUESTS: Final[int]

class Task:
    kind: int
    protocol: int
    operation: int
    session: int
    frame: bytes
    peer: str
    @property
    def answered(self) -> bool: ...
    def answer(self, body: Buffer, action: int, user: AuthenticatedUser | None = None, may: int = ...) -> None: ...

class PolicyRequests:
    def __init__(self, *, jobs_max: int, bytes_max: int, frame_bytes_max: int) -> None: ...
    def take(self, backlog: int) -> Task | None: ...
    def stop(self) -> None: ...
    def stats(self) -> dict[str, int]: ...
