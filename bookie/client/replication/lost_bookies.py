"""Which bookies count as lost, and since when. It keeps state only, and neither waits nor reads a clock.

A bookie is missing if it is known and not registered. It is lost once it was missing for the delay, so that a restart
moves no data, even if the auditor changes meanwhile, or a periodic check finds the bookie missing (OP2). As in Apache
BookKeeper, several bookies that are missing at the same time are lost at once.
"""

from collections.abc import Iterable

__all__ = ["LostBookies"]


class LostBookies:
    """The missing bookies. Times are in seconds, of any one clock."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._missing_since: dict[str, float] = {}
        self._audited: set[str] = set()

    def know(self, bookies: Iterable[str]) -> None:
        """Add bookies on which there are ledgers; they may have died before there was an auditor (bug 38)."""
        self._known.update(bookies)
        self._audited.clear()

    def look(self, alive: frozenset[str], now_s: float) -> None:
        """Take over the bookies that are registered now."""
        self._known |= alive
        for bookie in alive:
            self._missing_since.pop(bookie, None)
        self._audited -= alive
        for bookie in self._known - alive:
            self._missing_since.setdefault(bookie, now_s)

    def due(self, delay_s: float, now_s: float, *, at_once: bool = False) -> frozenset[str]:
        """Return the lost bookies whose ledgers were not marked yet."""
        waiting = self._missing_since.keys() - self._audited
        if at_once or len(waiting) > 1:
            return frozenset(waiting)
        return frozenset(bookie for bookie in waiting if now_s - self._missing_since[bookie] >= delay_s)

    def next_due_s(self, delay_s: float) -> float | None:
        """Return when the next bookie is lost if it does not come back, or None."""
        waiting = self._missing_since.keys() - self._audited
        return min((self._missing_since[bookie] + delay_s for bookie in waiting), default=None)

    def audited(self, bookies: Iterable[str]) -> None:
        """Note that the ledgers of these bookies are marked."""
        self._audited.update(bookies)

    @property
    def missing(self) -> frozenset[str]:
        """The known bookies that are not registered."""
        return frozenset(self._missing_since)

    @property
    def waiting(self) -> bool:
        """Whether a bookie is missing whose ledgers are not marked."""
        return bool(self._missing_since.keys() - self._audited)
