"""What the policies share that know network locations: their depth, bookies that left, the order of reads. One
event loop.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import TypeVar

from bookie.client.config import ClientConfig
from bookie.client.placement.base import Policy
from bookie.client.placement.locations import Locations
from bookie.client.placement.racks import Racks
from bookie.client.placement.read_order import ReadOrder
from bookie.errors import NotEnoughBookies

__all__ = ["PlacedPolicy"]

T = TypeVar("T")

log = logging.getLogger(__name__)


def depth(location: str) -> int:
    """Return the number of components of a location."""
    return location.count("/")


class PlacedPolicy(Policy):
    """A policy that knows network locations.

    All candidates have locations of the same depth, that of the bookies which were there first; a bookie of another
    depth is never chosen. A bookie that left can be chosen for `networkTopologyStabilizePeriodSeconds` more if the
    others do not suffice.
    """

    def __init__(
        self, config: ClientConfig, random: Random, clock: Callable[[], float], locations: Locations, local: str
    ) -> None:
        """`local` is the client's own location, or the default location if it is unknown or must be ignored."""
        super().__init__(config, random)
        self.locations = locations
        self.local = local
        self.learns = True
        """Whether `bookies_changed` calls `Locations.learn`; if not, the caller does so before, off the event loop."""
        self.reads = ReadOrder(config, random, clock)
        self._clock = clock
        self._departed: dict[str, float] = {}
        self._racks: Racks | None = None

    def bookies_changed(self, writable: frozenset[str], read_only: frozenset[str]) -> None:
        """Take over the registered bookies. Look up the locations of new ones, which may block, if `learns` is set."""
        candidates = writable - read_only
        if self.learns:
            self.locations.learn(candidates - self.members)
        stayed, left = self.members & candidates, self.members - candidates
        until = self._clock() + self.config.topology_stabilize_s
        self._departed.update(dict.fromkeys(left, until))
        for bookie in writable | read_only:
            self._departed.pop(bookie, None)
        super().bookies_changed(self._at_one_depth(candidates, stayed), read_only)

    def _at_one_depth(self, candidates: Collection[str], stayed: Collection[str]) -> frozenset[str]:
        depths = {bookie: depth(self.locations.of(bookie)) for bookie in sorted(candidates)}
        counts = Counter(depths[bookie] for bookie in stayed or depths)
        kept = max(counts, key=lambda one: (counts[one], -one), default=0)
        for bookie, found in depths.items():
            if found != kept:
                log.warning(
                    "bookie is never chosen, its location has another depth bookieId=%s location=%s depth=%d",
                    bookie,
                    self.locations.of(bookie),
                    kept,
                )
        return frozenset(bookie for bookie, found in depths.items() if found == kept)

    def changed(self) -> None:
        super().changed()
        self._racks = None

    def racks_of(self, bookies: Sequence[str]) -> Racks:
        """Return these candidates by rack."""
        of = self.locations.of
        return Racks({bookie: of(bookie) for bookie in bookies}, self.weights, self.config, self.random, self.note)

    @property
    def racks(self) -> Racks:
        """All writable bookies by rack."""
        if self._racks is None:
            self._racks = self.racks_of(self.writable)
        return self._racks

    def either(self, attempt: Callable[[Racks], T]) -> T:
        """Try among the writable bookies, and then also with those that left recently. Raises NotEnoughBookies."""
        try:
            return attempt(self.racks)
        except NotEnoughBookies:
            now = self._clock()
            self._departed = {bookie: until for bookie, until in self._departed.items() if until > now}
            if not self._departed:
                raise
            return attempt(self.racks_of(sorted({*self.writable, *self._departed})))

    def read_order(
        self, ensemble: Sequence[str], write_set: Sequence[int], pending: Callable[[str], int]
    ) -> Sequence[int]:
        return self.reads.order(ensemble, write_set, pending, writable=self.members, read_only=self.read_only)

    def spans_fault_domains(self, acked: Collection[str], write_quorum: int, ack_quorum: int) -> bool:
        """Return whether the bookies are in enough racks. Those that are no longer writable count, too."""
        return len({self.locations.of(bookie) for bookie in acked}) >= min(write_quorum, self.config.racks_min)

    def slow(self, bookie: str) -> None:
        self.reads.slow(bookie)

    def failed(self, bookie: str, entry: int) -> None:
        self.reads.failed(bookie, entry)
