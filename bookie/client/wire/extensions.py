"""Operations beyond Apache BookKeeper's: only a bookie that advertises one is sent it. Any thread.

A Java bookie closes the connection on an operation that it does not know, so nothing is tried out.
"""

from collections.abc import Iterable

BATCH_READ = "batchRead"
WRITE_CLOSE = "writeClose"


class Extensions:
    """What one bookie offers: made from what it advertises, shared by all channels to it for the client's lifetime."""

    def __init__(self, advertised: Iterable[str] = ()) -> None:
        self._offered = frozenset(advertised)

    def __contains__(self, name: str) -> bool:
        return name in self._offered

    def withdraw(self, name: str) -> None:
        """The bookie answered that it does not know the operation after all."""
        self._offered -= {name}
