"""Choose bookies over racks: an ensemble, or one bookie that replaces another. One event loop.

The steps are those of Apache BookKeeper. Where they end without satisfying the racks, a search finds a solution if
there is one; Apache BookKeeper has no such search.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from bookie.client.config import ClientConfig
from bookie.client.placement.base import not_enough
from bookie.client.placement.coverage import Spread
from bookie.client.placement.racks import Racks
from bookie.client.placement.spread_search import spread_over

__all__ = ["Growth", "RackChoice"]


class Growth(Protocol):
    """A larger ensemble, of which the bookies chosen here become a part."""

    durable: bool
    """Whether its rule must hold even where all other rules are given up."""

    def accepts(self, bookie: str) -> bool:
        """Return whether this bookie may be the next one."""
        ...

    def add(self, bookie: str) -> None:
        """Add the next bookie."""
        ...


class RackChoice:
    """The rules of one client. `default` is the rack of bookies without a location, `local` the client's own."""

    def __init__(self, config: ClientConfig, default: str, local: str) -> None:
        self.racks_min = config.racks_min
        self.enforced = config.racks_enforced
        self._default = default
        self._local = local if local != default else None

    def taken(self, racks: Racks, excluded: Collection[str]) -> set[str]:
        """Return all bookies that must not be chosen."""
        taken = set(excluded)
        if self.enforced:
            taken.update(racks.members.get(self._default, ()))
        return taken

    def ensemble(
        self, racks: Racks, size: int, write_quorum: int, excluded: Collection[str], growth: Growth | None = None
    ) -> tuple[str, ...]:
        """Choose `size` bookies. Raises NotEnoughBookies."""
        taken = self.taken(racks, excluded)
        if len(racks.members) < 2:
            if self.enforced and min(write_quorum, self.racks_min) > 1:
                raise not_enough(size, racks.rack_of, excluded, f"all in {len(racks.members)} rack")
            return self._any(racks, size, taken, growth)
        spread = Spread(size, write_quorum, self.racks_min)
        if growth is not None:
            chosen, _ = self._steps(racks, size, taken, spread, growth)
        else:
            chosen, loosened = self._steps(racks, size, taken, spread, None)
            if len(chosen) < size or loosened:
                chosen = self._searched(racks, size, write_quorum, taken.difference(chosen)) or chosen
        if len(chosen) < size:
            why = f"in {len(racks.members)} racks"
            raise not_enough(size, racks.rack_of, taken.difference(chosen), why)
        return tuple(chosen)

    def _steps(
        self, racks: Racks, size: int, taken: set[str], spread: Spread, growth: Growth | None
    ) -> tuple[list[str], bool]:
        """Choose one bookie after the other, each outside the racks before it.

        Returns the bookies, and whether the spread over racks was given up for one of them.
        """
        rack_of, accepts = racks.rack_of, spread.accepts
        chosen: list[str] = []
        avoided: list[str] = []
        loosened = False

        if growth is None:

            def refused(bookie: str) -> bool:
                return bookie in taken or not accepts(rack_of[bookie])

            loose: Callable[[str], bool] = taken.__contains__
        else:

            def refused(bookie: str) -> bool:
                return bookie in taken or not accepts(rack_of[bookie]) or not growth.accepts(bookie)

            def loose(bookie: str) -> bool:
                return bookie in taken or (growth.durable and not growth.accepts(bookie))

        for place in range(size):
            preferred = self._local if place == 0 else None
            bookie = (racks.inside(preferred).choose(refused)) if preferred else racks.outside(avoided, refused)
            if bookie is None and (preferred or avoided):
                bookie = racks.all.choose(refused)
                if bookie is None and (not self.enforced or place == 0):
                    bookie = racks.outside(avoided, loose) or racks.all.choose(loose)
                    loosened = True
                avoided.clear()
            if bookie is None:
                break
            taken.add(bookie)
            chosen.append(bookie)
            rack = rack_of[bookie]
            spread.add(rack)
            if growth is not None:
                growth.add(bookie)
            avoided.append(rack)
        return chosen, loosened

    def _searched(self, racks: Racks, size: int, write_quorum: int, barred: set[str]) -> list[str] | None:
        free = {rack: sum(one not in barred for one in members) for rack, members in racks.members.items()}
        places = spread_over(free, size, write_quorum, self.racks_min, racks.random)
        if places is None:
            return None
        chosen: list[str] = []
        for rack in places:
            bookie = racks.inside(rack).choose(barred.__contains__)
            assert bookie is not None, "fewer bookies in the rack than were counted"
            barred.add(bookie)
            chosen.append(bookie)
        return chosen

    def _any(self, racks: Racks, size: int, taken: set[str], growth: Growth | None) -> tuple[str, ...]:
        chosen: list[str] = []

        def refused(bookie: str) -> bool:
            return bookie in taken or (growth is not None and growth.durable and not growth.accepts(bookie))

        for _ in range(size):
            bookie = racks.all.choose(refused)
            if bookie is None:
                raise not_enough(size, racks.rack_of, taken.difference(chosen))
            taken.add(bookie)
            chosen.append(bookie)
            if growth is not None:
                growth.add(bookie)
        return tuple(chosen)

    def replacement(
        self,
        racks: Racks,
        write_quorum: int,
        places: Sequence[str],
        index: int,
        excluded: Collection[str],
    ) -> str:
        """Choose a bookie for `places[index]` according to the racks of the ensemble, whose members must be excluded.

        It is from the same rack, or else from a rack without another member, or else from any that keeps the write
        quorums spread. Raises NotEnoughBookies.
        """
        taken, rack_of, old = self.taken(racks, excluded), racks.rack_of, places[index]
        others = {*places[:index], *places[index + 1 :]}
        tries: list[Callable[[], str | None]] = [
            lambda: racks.all.choose(lambda bookie: bookie in taken or rack_of[bookie] in others),
            lambda: racks.outside(
                [rack for rack in racks.members if not self._keeps(rack, write_quorum, places, index)],
                taken.__contains__,
            ),
        ]
        same = racks.inside(old)
        tries.insert(
            0 if self._keeps(old, write_quorum, places, index) else len(tries),
            lambda: same.choose(taken.__contains__),
        )
        if not self.enforced:
            tries.append(lambda: racks.all.choose(taken.__contains__))
        for attempt in tries:
            bookie = attempt()
            if bookie is not None:
                return bookie
        raise not_enough(1, racks.rack_of, taken, f"in {len(racks.members)} racks")

    def _keeps(self, rack: str, write_quorum: int, places: Sequence[str], index: int) -> bool:
        """Return whether all write quorums through `index` are spread if a bookie of this rack is there."""
        size = len(places)
        quorum, needed = min(write_quorum, size), min(write_quorum, self.racks_min)
        for start in range(index - quorum + 1, index + 1):
            window = {places[place % size] for place in range(start, start + quorum) if place % size != index}
            if len({*window, rack}) < needed:
                return False
        return True
