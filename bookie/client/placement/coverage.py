"""What the write quorums of an ensemble must be spread over, checked while it grows. One event loop.

Upstream's RRTopologyAwareCoverageEnsemble, without its subsets of regions: the regions that together hold most are the
ones that hold most each.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

__all__ = ["covered", "RegionDurability", "Spread"]

W = TypeVar("W")


class _Windows(Generic[W]):
    """What is known of each write quorum of an ensemble of `size` bookies, while it grows."""

    __slots__ = ("_windows", "_write_quorum", "places")

    def __init__(self, size: int, write_quorum: int, window: Callable[[], W]) -> None:
        self._write_quorum = min(write_quorum, size)
        # Where the write quorum is the ensemble there is one set of places, however it is turned.
        self._windows = [window() for _ in range(1 if size == self._write_quorum else size)]
        self.places: list[str] = []

    def _open(self) -> Sequence[W]:
        """Those that the next bookie belongs to."""
        windows = self._windows
        if len(windows) == 1:
            return windows
        place = len(self.places)
        return [windows[start] for start in range(place - self._write_quorum + 1, place + 1)]


class Spread(_Windows[list[str]]):
    """Each write quorum spans so many different places, be it racks or regions. Knows places, not bookies."""

    __slots__ = ("_at_least",)

    def __init__(self, size: int, write_quorum: int, at_least: int) -> None:
        """Of an ensemble of `size` bookies."""
        super().__init__(size, write_quorum, list)
        self._at_least = min(write_quorum, at_least) if write_quorum > 1 else 0

    def copy(self) -> "Spread":
        """To go on from here in two ways."""
        twin = Spread.__new__(Spread)
        twin._write_quorum, twin._at_least = self._write_quorum, self._at_least
        twin._windows = [window.copy() for window in self._windows]
        twin.places = self.places.copy()
        return twin

    def accepts(self, place: str) -> bool:
        """Whether every quorum can still be spread when the next bookie stands there."""
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
        """The next bookie stands there."""
        for window in self._open():
            window.append(place)
        self.places.append(place)


class RegionDurability(_Windows[Counter[str]]):
    """No `regions - 1` regions together hold an ack quorum of a write quorum, so that to lose them loses nothing."""

    __slots__ = ("_ack_quorum", "_regions")

    def __init__(self, size: int, write_quorum: int, ack_quorum: int, regions: int) -> None:
        """Of an ensemble of `size` bookies."""
        super().__init__(size, write_quorum, Counter)
        self._ack_quorum = ack_quorum
        self._regions = regions

    def copy(self) -> "RegionDurability":
        """To go on from here in two ways."""
        twin = RegionDurability.__new__(RegionDurability)
        twin._write_quorum, twin._ack_quorum, twin._regions = self._write_quorum, self._ack_quorum, self._regions
        twin._windows = [window.copy() for window in self._windows]
        twin.places = self.places.copy()
        return twin

    def accepts(self, place: str) -> bool:
        """Whether no quorum would then lean on too few regions."""
        if self._regions <= 1:
            return True
        for window in self._open():
            others = sorted((count for region, count in window.items() if region != place), reverse=True)
            if window[place] + 1 + sum(others[: self._regions - 2]) >= self._ack_quorum:
                return False
        return True

    def add(self, place: str) -> None:
        """The next bookie stands there."""
        for window in self._open():
            window[place] += 1
        self.places.append(place)


def covered(ensemble: Sequence[str], write_quorum: int, at_least: int, place_of: Callable[[str], str | None]) -> bool:
    """Whether every write quorum spans so many places; a bookie that has none adds none."""
    places = [place_of(bookie) for bookie in ensemble]
    needed = min(write_quorum, at_least)
    turns = 1 if write_quorum >= len(places) else len(places)
    doubled = places + places
    return all(len({*doubled[start : start + write_quorum]} - {None}) >= needed for start in range(turns))
