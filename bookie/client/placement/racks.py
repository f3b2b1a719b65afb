"""Bookies by rack, to draw from one rack, from all racks, or from all but some. One event loop.

An instance is made anew when bookies or weights change. Drawing outside some racks takes the same time in a cluster
of any size: the limits of the weights there are computed from ranks that are kept by rack, and the draw itself is
among all bookies and drops those that are not allowed.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping
from random import Random

from bookie.client.config import ClientConfig
from bookie.client.placement.pool import DRAWS_MAX, Note, Pool
from bookie.client.placement.weights import Limits, limits, limits_of

__all__ = ["Racks"]

# The number of different sets of racks for which the weights outside are kept.
OUTSIDES_MAX = 4096


class Racks:
    """The candidates by rack. Immutable, except for a cache of earlier draws."""

    def __init__(
        self,
        rack_of: Mapping[str, str],
        free: Mapping[str, int],
        config: ClientConfig,
        random: Random,
        note: Note = lambda _bookie, _weight: None,
    ) -> None:
        """`rack_of` has the rack of every candidate, in the order in which they are drawn from."""
        self.rack_of = rack_of
        self.random = random
        self.weighted = config.weighted_placement
        self._config = config
        self._free = free
        self._note = note
        self.members: dict[str, list[str]] = {}
        for bookie, rack in rack_of.items():
            self.members.setdefault(rack, []).append(bookie)
        self._pools: dict[str, Pool] = {}
        self._outsides: dict[frozenset[str], tuple[Limits, float]] = {}
        # The free bytes of all candidates in ascending order, unknown ones first; the rank of each candidate in that
        # order, and the ranks by rack.
        self._order: list[int] = []
        self._unknown = 0
        self._rank_of: dict[str, int] = {}
        self._ranks: dict[str, list[int]] = {}
        self._limits = Limits(1.0, 1.0)
        if self.weighted and rack_of:
            self._rank()
        bookies = list(rack_of)
        weights = [self._limits.weight(free.get(bookie, 0)) for bookie in bookies] if self.weighted else None
        self.all = Pool(bookies, weights, random, note)

    def _rank(self) -> None:
        free = self._free
        ranked = sorted((free.get(bookie, 0), bookie) for bookie in self.rack_of)
        self._order = [one for one, _ in ranked]
        for rank, (_, bookie) in enumerate(ranked):
            self._rank_of[bookie] = rank
            self._ranks.setdefault(self.rack_of[bookie], []).append(rank)
        self._unknown = bisect_right(self._order, 0)
        self._limits = self.limits_outside((), ())

    def limits_outside(self, racks: Collection[str], without: Collection[str]) -> Limits:
        """Return the limits of the weights of candidates outside these racks, without the candidates in `without`.

        Only for weighted placement; the bookies in `without` must be outside the racks.
        """
        order = self._order
        taken: list[int] = []
        for rack in racks:
            taken += self._ranks.get(rack, ())
        taken += [self._rank_of[one] for one in without]
        taken.sort()

        def known(nth: int) -> int:
            rank = nth
            while (moved := nth + bisect_right(taken, rank)) != rank:
                rank = moved
            return order[rank]

        count = len(order) - len(taken)
        unknown = self._unknown - bisect_left(taken, self._unknown)
        smallest = known(unknown) if unknown < count else 0
        return limits(known, count, smallest, self._config.weight_multiple_max, self._config.weight_cap)

    def inside(self, place: str) -> Pool:
        """Return a pool of the bookies in a rack, or below a path above racks; it is empty if there are none."""
        pool = self._pools.get(place)
        if pool is None:
            found = self.members.get(place)
            if found is None:
                below = place + "/"
                found = [bookie for bookie, rack in self.rack_of.items() if rack.startswith(below)]
            weights = None
            if self.weighted and found:
                free = [self._free.get(bookie, 0) for bookie in found]
                bound = limits_of(free, self._config.weight_multiple_max, self._config.weight_cap)
                weights = [bound.weight(one) for one in free]
            pool = self._pools[place] = Pool(found, weights, self.random, self._note)
        return pool

    def outside(
        self, avoided: Collection[str], refused: Callable[[str], bool], without: Collection[str] = ()
    ) -> str | None:
        """Draw a bookie that is in none of the avoided racks and is not refused; None if there is none.

        The weights are capped by the median of the candidates outside, as in Apache BookKeeper's static selector.
        With `without`, these bookies, all of which are refused, do not count for the median, as in its dynamic
        selector.
        """
        if not avoided and not without:
            return self.all.choose(refused)
        if len(avoided) >= len(self.members) and self.members.keys() <= set(avoided):
            return None
        rack_of, draw = self.rack_of, self.all.draw
        if self.weighted:
            others = [one for one in without if one in rack_of and rack_of[one] not in avoided]
            if not self._unbounded(avoided, others):
                return self._weighed(frozenset(avoided), refused, others)
        for _ in range(DRAWS_MAX):
            drawn = draw()
            if rack_of[drawn] not in avoided and not refused(drawn):
                if self.weighted:
                    self._note(drawn, self._limits.weight(self._free.get(drawn, 0)))
                return drawn
        return self._found(avoided, refused, self._limits if self.weighted else None)

    def _unbounded(self, avoided: Collection[str], without: Collection[str]) -> bool:
        """Return whether it is certain that all weights outside are known, not capped, and the same as among all
        bookies.
        """
        order, members, multiple = self._order, self.members, self._config.weight_multiple_max
        if not order[0] or multiple <= 0:
            return order[0] > 0
        if self._config.weight_cap == "min":
            return order[-1] <= multiple * order[0]
        count = len(order) - len(without)
        for rack in avoided:
            count -= len(members.get(rack, ()))
        # With fewer candidates, the median is not below the value at its place among all.
        return order[-1] <= multiple * order[max(count - 1, 0) // 2]

    def _weighed(self, racks: frozenset[str], refused: Callable[[str], bool], without: Collection[str]) -> str | None:
        bound, most = self._outside(racks, without)
        rack_of, draw = self.rack_of, self.all.draw
        free, whole, random = self._free, self._limits, self.random.random
        for _ in range(DRAWS_MAX):
            drawn = draw()
            if rack_of[drawn] in racks:
                continue
            space = free.get(drawn, 0)
            # It was drawn by its weight among all; its weight here decides whether that is accepted.
            if random() * most * whole.weight(space) < bound.weight(space) and not refused(drawn):
                self._note(drawn, bound.weight(space))
                return drawn
        return self._found(racks, refused, bound)

    def _outside(self, racks: frozenset[str], without: Collection[str]) -> tuple[Limits, float]:
        """Return the limits outside, and the largest ratio of a weight there to that among all bookies."""
        known = None if without else self._outsides.get(racks)
        if known is None:
            if not without and len(self._outsides) >= OUTSIDES_MAX:
                self._outsides.clear()
            bound, whole, order = self.limits_outside(racks, without), self._limits, self._order
            kinds = (order[0], order[-1], order[min(self._unknown, len(order) - 1)])
            known = bound, max([bound.weight(space) / whole.weight(space) for space in kinds])
            if not without:
                self._outsides[racks] = known
        return known

    def _found(self, racks: Collection[str], refused: Callable[[str], bool], bound: Limits | None) -> str | None:
        left = [
            bookie
            for rack, members in self.members.items()
            if rack not in racks
            for bookie in members
            if not refused(bookie)
        ]
        if not left:
            return None
        weights = None if bound is None else [bound.weight(self._free.get(bookie, 0)) for bookie in left]
        return Pool(left, weights, self.random, self._note).choose(lambda _: False)
