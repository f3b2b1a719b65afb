"""A cache of the digest type and key of each ledger. Thread `scrub`."""

from collections import OrderedDict
from collections.abc import Callable, Iterable

from bookie._fast.wire.digest import Digester
from bookie.errors import BookKeeperError

__all__ = ["Digests"]

REMEMBERED = 1 << 14
"""The number of ledgers; a digester takes about 300 bytes."""


class Digests:
    """A cache of digesters. `ask` reads the metadata of one ledger and returns its Digester, or None if it has none
    or does not exist. If the metadata store fails to answer, the digester is unknown for this call, and the next call
    asks again.
    """

    def __init__(self, ask: Callable[[int], Digester | None]) -> None:
        self._ask = ask
        self._known: OrderedDict[int, Digester | None] = OrderedDict()
        self.failures = 0

    def __call__(self, ledger: int) -> Digester | None:
        """Return the digester of a ledger, or None if it is not known."""
        if ledger in self._known:
            self._known.move_to_end(ledger)
            return self._known[ledger]
        try:
            found = self._ask(ledger)
        except BookKeeperError:
            self.failures += 1
            return None
        self._known[ledger] = found
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return found

    def of(self, ledgers: Iterable[int]) -> list[Digester | None]:
        """Return the digester of each ledger."""
        return [self(ledger) for ledger in ledgers]

    def forget(self) -> None:
        """Clear the cache before a pass, because ledgers are created and deleted meanwhile."""
        self._known.clear()
