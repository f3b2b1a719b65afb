"""Thousands of ensembles at once, with numpy: each is as likely as if the policy itself had chosen one after the
other.

The weights and their limits are the policy's; this module only draws. A policy draws the next bookie by weight among
those that are allowed. Here the next bookie of all ensembles is drawn at once among all bookies, and drawn again
where it is not allowed, or, with a proportional probability, where its weight outside the racks chosen before is
smaller. One thread; it needs about 60 bytes of memory for each bookie of an ensemble.
"""

import numpy as np
from numpy.typing import NDArray

from bookie.client.placement.base import Policy, not_enough
from bookie.client.placement.placed import PlacedPolicy
from bookie.client.placement.racks import Racks

__all__ = ["Bulk"]

Places = NDArray[np.intp]
Floats = NDArray[np.float64]

BULK = {"default", "rack"}
"""The policies that draw. Others are asked for one ensemble after the other."""
ROUNDS_MAX = 64
"""The number of redraws after which choosing one ensemble after the other is faster."""


class Bulk:
    """Chooses ensembles as `policy` would in its present state; make a new instance after a change.

    The ensembles are indices into `writable`. The client's own location is ignored.
    """

    def __init__(self, policy: Policy, generator: np.random.Generator) -> None:
        self.policy = policy
        self._random = generator
        self._racks: Racks | None = policy.racks if isinstance(policy, PlacedPolicy) else None
        pool = self._racks.all if self._racks else policy.all
        self.writable = tuple(pool.bookies)
        self._weights: Floats | None = None if pool.shares is None else np.array(pool.shares, dtype=np.float64)
        self._sums = None if self._weights is None else np.cumsum(self._weights)
        self._rack_of: Places | None = None
        self._outsides: dict[tuple[int, int], tuple[float, float, float]] = {}
        if self._racks and len(self._racks.members) > 1:
            self._names = sorted(self._racks.members)
            place = {name: at for at, name in enumerate(self._names)}
            self._rack_of = np.array([place[self._racks.rack_of[one]] for one in self.writable], dtype=np.intp)
            self._free = np.array([policy.weights.get(one, 0) for one in self.writable], dtype=np.float64)

    def ensembles(self, count: int, size: int, write_quorum: int) -> Places:
        """Return `count` ensembles as an array of shape (count, size). Raises NotEnoughBookies."""
        if size > len(self.writable):
            raise not_enough(size, self.writable, ())
        searched = self._rack_of is not None and size > len(self._names)  # some racks must be used twice
        if searched or self.policy.config.placement_policy not in BULK:
            return self._one_by_one(count, size, write_quorum)
        chosen = np.empty((count, size), dtype=np.intp)
        for place in range(size):
            if not self._column(chosen, place):
                return self._one_by_one(count, size, write_quorum)
        return chosen

    def _column(self, chosen: Places, place: int) -> bool:
        """Draw the next bookie of every ensemble. Returns False if so few are allowed that drawing does not find
        them.
        """
        open_rows = np.arange(len(chosen))
        bounds = self._bounds(chosen, place)
        for _ in range(ROUNDS_MAX):
            drawn = self._draw(len(open_rows))
            taken = self._taken(chosen[open_rows, :place], drawn)
            if bounds is not None:
                low, cap, most = (each[open_rows] for each in bounds)
                free = self._free[drawn]
                there = np.minimum(np.where(free > 0, free, low), cap)
                assert self._weights is not None
                taken |= self._random.random(len(drawn)) * most * self._weights[drawn] >= there
            chosen[open_rows, place] = drawn
            open_rows = open_rows[taken]
            if not len(open_rows):
                return True
        return False

    def _draw(self, count: int) -> Places:
        if self._sums is None:
            return self._random.integers(len(self.writable), size=count, dtype=np.intp)
        at = np.searchsorted(self._sums, self._random.random(count) * self._sums[-1], side="right")
        last: Places = np.minimum(at, len(self.writable) - 1)
        return last

    def _taken(self, before: Places, drawn: Places) -> NDArray[np.bool_]:
        """Return for each drawn bookie whether it, or its rack, is in the ensemble already."""
        if self._rack_of is not None:
            before, drawn = self._rack_of[before], self._rack_of[drawn]
        taken = np.zeros(len(drawn), dtype=bool)
        for column in before.T:
            taken |= column == drawn
        return taken

    def _bounds(self, chosen: Places, place: int) -> tuple[Floats, Floats, Floats] | None:
        """Return, by ensemble, the limits of weights outside its racks so far, and the largest ratio to the overall
        weights.
        """
        if self._rack_of is None or self._weights is None or place == 0:
            return None
        assert self._racks is not None
        racks = np.sort(self._rack_of[chosen[:, :place]], axis=1)
        keys = racks @ (len(self._names) ** np.arange(place))
        unique, first, which = np.unique(keys, return_index=True, return_inverse=True)
        found = np.empty((len(first), 3))
        for at, (key, row) in enumerate(zip(unique.tolist(), first, strict=True)):
            known = self._outsides.get((place, key))
            if known is None:
                bound = self._racks.limits_outside([self._names[one] for one in racks[row]], ())
                weights = np.minimum(np.where(self._free > 0, self._free, bound.low), bound.cap)
                known = self._outsides[place, key] = bound.low, bound.cap, float((weights / self._weights).max())
            found[at] = known
        low, cap, most = found[which.ravel()].T
        return low, cap, most

    def _one_by_one(self, count: int, size: int, write_quorum: int) -> Places:
        place = {bookie: at for at, bookie in enumerate(self.writable)}
        chosen = [self.policy.new_ensemble(size, write_quorum, write_quorum) for _ in range(count)]
        return np.array([[place[one] for one in row] for row in chosen], dtype=np.intp)
