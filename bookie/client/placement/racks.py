"""Bookies by the rack they stand in, to draw from one rack, from all, or from all but some. One event loop.

Made anew when members or weights change. To draw outside of some racks costs the same in a cluster of any size: limits
of the weights there come from ranks that are known by rack, and the draw itself goes over all bookies and drops what it
must not take.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping
from random import Random

from bookie.client.config import ClientConfig
from bookie.client.placement.pool import DRAWS_MAX, Pool
from bookie.client.placement.weights import Limits, limits, limits_of

__all__ = ["Racks"]

# Weights outside of so many different sets of racks are kept.
OUTSIDES_MAX = 4096


class Racks:
    """Immutable but for what it keeps of earlier draws."""

    def __init__(
        self, rack_of: Mapping[str, str], free: Mapping[str, int], config: ClientConfig, random: Random
    ) -> None:
        """`rack_of`: every candidate's rack, in the order in which they shall be drawn from."""
        self.rack_of = rack_of
        self.random = random
        self.weighted = config.weighted_placement
        self._config = config
        self._free = free
        self.members: dict[str, list[str]] = {}
        for bookie, rack in rack_of.items():
            self.members.setdefault(rack, []).append(bookie)
        self._pools: dict[str, Pool] = {}
        self._outsides: dict[frozenset[str], tuple[Limits, float]] = {}
        # The free bytes of all candidates in order, unknown ones first; who stands where in it, and each rack's.
        self._order: list[int] = []
        self._unknown = 0
        self._rank_of: dict[str, int] = {}
        self._ranks: dict[str, list[int]] = {}
        self._limits = Limits(1.0, 1.0)
        if self.weighted and rack_of:
            self._rank()
        bookies = list(rack_of)
        weights = [self._limits.weight(free.get(bookie, 0)) for bookie in bookies] if self.weighted else None
        self.all = Pool(bookies, weights, random)

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
        """Of the weights of candidates outside of these racks, and but for those of `without`, who are such candidates.

        Only where weights count.
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
        """Of a rack, or of what lies below a path above racks; empty when there is none."""
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
            pool = self._pools[place] = Pool(found, weights, self.random)
        return pool

    def outside(
        self, avoided: Collection[str], refused: Callable[[str], bool], without: Collection[str] = ()
    ) -> str | None:
        """One that stands in none of the racks avoided and is not refused; None: there is none.

        Weights are those of the candidates outside: their median bounds them, as upstream's do, the one of the static
        selector. `without`: who does not count for the median either, all of them refused: the dynamic selector's.
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
                return drawn
        return self._found(avoided, refused, self._limits if self.weighted else None)

    def _unbounded(self, avoided: Collection[str], without: Collection[str]) -> bool:
        """Whether it is certain that nobody outside is unknown or capped, and weighs what it weighs in the whole."""
        order, members, multiple = self._order, self.members, self._config.weight_multiple_max
        if not order[0] or multiple <= 0:
            return order[0] > 0
        if self._config.weight_cap == "min":
            return order[-1] <= multiple * order[0]
        count = len(order) - len(without)
        for rack in avoided:
            count -= len(members.get(rack, ()))
        # Among fewer the median is not below what stands in its place among all.
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
            # It was drawn by its weight in the whole: what it weighs here decides whether that stands.
            if random() * most * whole.weight(space) < bound.weight(space) and not refused(drawn):
                return drawn
        return self._found(racks, refused, bound)

    def _outside(self, racks: frozenset[str], without: Collection[str]) -> tuple[Limits, float]:
        """The limits outside, and by how much a weight there exceeds the one in the whole at most."""
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
        return Pool(left, weights, self.random).draw()
