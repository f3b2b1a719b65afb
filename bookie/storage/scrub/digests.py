"""What protects the entries of each ledger, remembered for a while. Thread `scrub`."""

from collections import OrderedDict
from collections.abc import Callable, Iterable

from bookie._fast.wire.digest import Digester
from bookie.errors import BookKeeperError

__all__ = ["Digests"]

REMEMBERED = 1 << 14
"""Ledgers; a digester takes some 300 bytes."""


class Digests:
    """`ask` reads the metadata of one ledger: its Digester, None where it has none or is not there. What the metadata
    store fails to answer is unknown this time, and asked again the next.
    """

    def __init__(self, ask: Callable[[int], Digester | None]) -> None:
        self._ask = ask
        self._known: OrderedDict[int, Digester | None] = OrderedDict()
        self.failures = 0

    def __call__(self, ledger: int) -> Digester | None:
        """None: nobody knows."""
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
        """Of each of them."""
        return [self(ledger) for ledger in ledgers]

    def forget(self) -> None:
        """Before a pass: ledgers are deleted and made meanwhile."""
        self._known.clear()
