"""Which bookies count as lost, and since when. Plain state; no waiting, no clock.

A bookie is missing when somebody knows it and it is not registered. It is lost once it was missing for the delay: so a
restart moves no data, also when the auditor changes meanwhile, or a periodic check finds it missing (OP2). As upstream,
more than one missing at a time are lost at once.
"""

from collections.abc import Iterable

__all__ = ["LostBookies"]


class LostBookies:
    """Times are seconds of any one clock."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._missing_since: dict[str, float] = {}
        self._audited: set[str] = set()

    def know(self, bookies: Iterable[str]) -> None:
        """Ledgers are on these: bug 38, they may have died before anybody looked."""
        self._known.update(bookies)
        self._audited.clear()

    def look(self, alive: frozenset[str], now_s: float) -> None:
        """These are registered now."""
        self._known |= alive
        for bookie in alive:
            self._missing_since.pop(bookie, None)
        self._audited -= alive
        for bookie in self._known - alive:
            self._missing_since.setdefault(bookie, now_s)

    def due(self, delay_s: float, now_s: float, *, at_once: bool = False) -> frozenset[str]:
        """Who is lost, and was not audited yet."""
        waiting = self._missing_since.keys() - self._audited
        if at_once or len(waiting) > 1:
            return frozenset(waiting)
        return frozenset(bookie for bookie in waiting if now_s - self._missing_since[bookie] >= delay_s)

    def next_due_s(self, delay_s: float) -> float | None:
        """When the next one is lost if it does not come back."""
        waiting = self._missing_since.keys() - self._audited
        return min((self._missing_since[bookie] + delay_s for bookie in waiting), default=None)

    def audited(self, bookies: Iterable[str]) -> None:
        """The ledgers of these are marked."""
        self._audited.update(bookies)

    @property
    def missing(self) -> frozenset[str]:
        """Known, and not registered."""
        return frozenset(self._missing_since)

    @property
    def waiting(self) -> bool:
        """Whether somebody is missing whose ledgers are not marked."""
        return bool(self._missing_since.keys() - self._audited)
