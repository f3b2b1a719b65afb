"""Which bookies count as lost, and since when. It keeps state only, and neither waits nor reads a clock.

A bookie is missing if it is known and not registered. It is lost once it was missing for the delay, so that a restart
moves no data, even if the auditor changes meanwhile, or a periodic check finds the bookie missing (OP2). The delay is
at least the *grace*, a session timeout: after the metadata store was restarted, stalled or could not be reached, every
bookie needs that long to register again. How many bookies are missing makes no difference. (Apache BookKeeper takes
several that are missing at the same time for lost at once, and so copies whole clusters after such a stall.)
"""

from collections.abc import Iterable

__all__ = ["LostBookies"]


class LostBookies:
    """The missing bookies. Times are in seconds, of any one clock; `grace_s` is the session timeout."""

    def __init__(self, grace_s: float = 0.0) -> None:
        self._grace_s = grace_s
        self._known: set[str] = set()
        self._missing_since: dict[str, float] = {}
        self._audited: set[str] = set()
        self._hurried: set[str] = set()
        self._none_before_s = float("-inf")

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
        self._hurried -= alive
        for bookie in self._known - alive:
            self._missing_since.setdefault(bookie, now_s)

    def interrupted(self, now_s: float) -> None:
        """Note that bookies could not register until now, or could not be seen. None is lost within the grace."""
        self._none_before_s = now_s + self._grace_s

    def hurry(self) -> None:
        """Let the bookies that are missing now be lost after the grace, however long the delay is."""
        self._hurried.update(self._missing_since)

    def due(self, delay_s: float, now_s: float) -> frozenset[str]:
        """Return the lost bookies whose ledgers were not marked yet."""
        return frozenset(bookie for bookie in self._waiting() if self._lost_at(bookie, delay_s) <= now_s)

    def next_due_s(self, delay_s: float) -> float | None:
        """Return when the next bookie is lost if it does not come back, or None."""
        return min((self._lost_at(bookie, delay_s) for bookie in self._waiting()), default=None)

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
        return bool(self._waiting())

    def _waiting(self) -> set[str]:
        return self._missing_since.keys() - self._audited

    def _lost_at(self, bookie: str, delay_s: float) -> float:
        delay_s = self._grace_s if bookie in self._hurried else max(delay_s, self._grace_s)
        return max(self._missing_since[bookie] + delay_s, self._none_before_s)
