"""Over what the write quorums of an ensemble must be spread, checked while the ensemble grows. One event loop.

It corresponds to Apache BookKeeper's RRTopologyAwareCoverageEnsemble, without its subsets of regions: the n regions
that together hold most bookies are simply the n regions that hold most each.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

__all__ = ["covered", "RegionDurability", "Spread"]

W = TypeVar("W")


class _Windows(Generic[W]):
    """What is known about each write quorum of an ensemble of `size` bookies, while it grows."""

    __slots__ = ("_windows", "_write_quorum", "places")

    def __init__(self, size: int, write_quorum: int, window: Callable[[], W]) -> None:
        self._write_quorum = min(write_quorum, size)
        # If the write quorum is as large as the ensemble, there is only one set of places.
        self._windows = [window() for _ in range(1 if size == self._write_quorum else size)]
        self.places: list[str] = []

    def _open(self) -> Sequence[W]:
        """Return the write quorums to which the next bookie belongs."""
        windows = self._windows
        if len(windows) == 1:
            return windows
        place = len(self.places)
        return [windows[start] for start in range(place - self._write_quorum + 1, place + 1)]


class Spread(_Windows[list[str]]):
    """The rule that each write quorum spans at least so many places, which are racks or regions. It knows places,
    not bookies.
    """

    __slots__ = ("_at_least",)

    def __init__(self, size: int, write_quorum: int, at_least: int) -> None:
        """Create the rule for an ensemble of `size` bookies."""
        super().__init__(size, write_quorum, list)
        self._at_least = min(write_quorum, at_least) if write_quorum > 1 else 0

    def copy(self) -> "Spread":
        """Return a copy, to try two ways of growing."""
        twin = Spread.__new__(Spread)
        twin._write_quorum, twin._at_least = self._write_quorum, self._at_least
        twin._windows = [window.copy() for window in self._windows]
        twin.places = self.places.copy()
        return twin

    def accepts(self, place: str) -> bool:
        """Return whether every write quorum can still satisfy the rule if the next bookie is at this place."""
        needed, quorum = self._at_least, self._write_quorum
        if not needed:
            return True
        for window in self._open():
            seen = len(window)
            if seen + needed > quorum:
                racks = {*window, place}
                if len(racks) < needed and quorum - seen - 1 < needed - len(racks):
                    return False
        return True

    def add(self, place: str) -> None:
        """Note the place of the next bookie."""
        for window in self._open():
            window.append(place)
        self.places.append(place)


class RegionDurability(_Windows[Counter[str]]):
    """The rule that no `regions - 1` regions hold an ack quorum of a write quorum, so that losing them loses no
    entry.
    """

    __slots__ = ("_ack_quorum", "_regions")

    def __init__(self, size: int, write_quorum: int, ack_quorum: int, regions: int) -> None:
        """Create the rule for an ensemble of `size` bookies."""
        super().__init__(size, write_quorum, Counter)
        self._ack_quorum = ack_quorum
        self._regions = regions

    def copy(self) -> "RegionDurability":
        """Return a copy, to try two ways of growing."""
        twin = RegionDurability.__new__(RegionDurability)
        twin._write_quorum, twin._ack_quorum, twin._regions = self._write_quorum, self._ack_quorum, self._regions
        twin._windows = [window.copy() for window in self._windows]
        twin.places = self.places.copy()
        return twin

    def accepts(self, place: str) -> bool:
        """Return whether every write quorum still satisfies the rule if the next bookie is in this region."""
        if self._regions <= 1:
            return True
        for window in self._open():
            others = sorted((count for region, count in window.items() if region != place), reverse=True)
            if window[place] + 1 + sum(others[: self._regions - 2]) >= self._ack_quorum:
                return False
        return True

    def add(self, place: str) -> None:
        """Note the region of the next bookie."""
        for window in self._open():
            window[place] += 1
        self.places.append(place)


def covered(ensemble: Sequence[str], write_quorum: int, at_least: int, place_of: Callable[[str], str | None]) -> bool:
    """Return whether every write quorum spans at least `at_least` places. A bookie without a place does not count."""
    places = [place_of(bookie) for bookie in ensemble]
    needed = min(write_quorum, at_least)
    turns = 1 if write_quorum >= len(places) else len(places)
    doubled = places + places
    return all(len({*doubled[start : start + write_quorum]} - {None}) >= needed for start in range(turns))
