"""The bookies that a writer had better not choose for a while. Event loop.

Bookies that died stay registered until their sessions expire, and so a writer that only asks the placement policy could
choose them again, or others of a region that is gone, one failure after the other.
"""

from collections.abc import Iterable

from bookie.client.contracts import Placement

__all__ = ["Suspects"]

LATELY_S = 10.0
"""For how long a bookie that failed is expected to fail again at once, in seconds."""


class Suspects:
    """The bookies that failed in the last `expiry_s` seconds. If a bookie fails that replaced another one, those that
    share its fault domain are suspected, too.
    """

    def __init__(self, placement: Placement, expiry_s: float) -> None:
        self._placement = placement
        self._expiry_s = expiry_s
        self._failed: dict[str, float] = {}
        self._lately: dict[str, float] = {}
        self._domains: dict[str, float] = {}
        self._chosen: set[str] = set()

    def failed(self, bookies: Iterable[str], now: float) -> None:
        """Note that bookies failed at this time, in seconds."""
        until = now + self._expiry_s
        self._lately = {bookie: end for bookie, end in self._lately.items() if end > now}
        for bookie in bookies:
            self._failed[bookie] = until
            self._lately[bookie] = now + LATELY_S
            if bookie in self._chosen:
                self._domains.update(dict.fromkeys(self._placement.neighbours(bookie), until))

    def chosen(self, bookies: Iterable[str]) -> bool:
        """Note that bookies were chosen as replacements. Return whether one of them had failed a moment ago."""
        chosen = set(bookies)
        self._chosen |= chosen
        return not chosen.isdisjoint(self._lately)

    def avoided(self, now: float) -> tuple[frozenset[str], ...]:
        """Return which bookies to avoid at this time: the largest set first, and the empty set last."""
        self._failed = {bookie: until for bookie, until in self._failed.items() if until > now}
        self._domains = {bookie: until for bookie, until in self._domains.items() if until > now}
        failed = frozenset(self._failed)
        return failed.union(self._domains), failed, frozenset()
