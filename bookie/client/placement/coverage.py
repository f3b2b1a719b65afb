"""What the write quorums of an ensemble must be spread over, checked while it grows. One event loop.

Upstream's RRTopologyAwareCoverageEnsemble, without its subsets of regions: the regions that together hold most are the
ones that hold most each.
"""

from collections import Counter
from collections.abc import Callable, Sequence

__all__ = ["covered", "RegionDurability", "Spread"]


class Spread:
    """Each write quorum spans so many different places, be it racks or regions. Knows places, not bookies."""

    __slots__ = ("_at_least", "_size", "_windows", "_write_quorum", "places")

    def __init__(self, size: int, write_quorum: int, at_least: int) -> None:
        """Of an ensemble of `size` bookies."""
        self._size = size
        self._write_quorum = min(write_quorum, size)
        self._at_least = min(write_quorum, at_least) if write_quorum > 1 else 0
        # Where the write quorum is the ensemble there is one set of places, however it is turned.
        windows = 1 if size == self._write_quorum else size
        self._windows: list[list[str]] = [[] for _ in range(windows)]
        self.places: list[str] = []

    def copy(self) -> "Spread":
        """To go on from here in two ways."""
        twin = Spread.__new__(Spread)
        twin._size, twin._write_quorum, twin._at_least = self._size, self._write_quorum, self._at_least
        twin._windows = [window.copy() for window in self._windows]
        twin.places = self.places.copy()
        return twin

    def _open(self) -> Sequence[list[str]]:
        windows = self._windows
        if len(windows) == 1:
            return windows
        place = len(self.places)
        return [windows[start] for start in range(place - self._write_quorum + 1, place + 1)]

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


class RegionDurability:
    """No `regions - 1` regions together hold an ack quorum of a write quorum, so that to lose them loses nothing."""

    __slots__ = ("_ack_quorum", "_regions", "_size", "_windows", "_write_quorum", "places")

    def __init__(self, size: int, write_quorum: int, ack_quorum: int, regions: int) -> None:
        """Of an ensemble of `size` bookies."""
        self._size = size
        self._write_quorum = min(write_quorum, size)
        self._ack_quorum = ack_quorum
        self._regions = regions
        windows = 1 if size == self._write_quorum else size
        self._windows: list[Counter[str]] = [Counter() for _ in range(windows)]
        self.places: list[str] = []

    def copy(self) -> "RegionDurability":
        """To go on from here in two ways."""
        twin = RegionDurability(self._size, self._write_quorum, self._ack_quorum, self._regions)
        twin._windows = [window.copy() for window in self._windows]
        twin.places = self.places.copy()
        return twin

    def _open(self) -> Sequence[Counter[str]]:
        windows = self._windows
        if len(windows) == 1:
            return windows
        place = len(self.places)
        return [windows[start] for start in range(place - self._write_quorum + 1, place + 1)]

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
