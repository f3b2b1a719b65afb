"""Region-aware placement: ensembles are spread evenly over regions, and over racks within each. One event loop.

A region is the first component of a location. The client's own region comes first; the others take turns.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from random import Random

from bookie.client.config import ClientConfig
from bookie.client.features import Features
from bookie.client.placement.base import not_enough
from bookie.client.placement.coverage import RegionDurability, Spread
from bookie.client.placement.locations import Locations
from bookie.client.placement.placed import PlacedPolicy
from bookie.client.placement.rack_choice import RackChoice
from bookie.client.placement.racks import Racks
from bookie.errors import ConfigurationError, NotEnoughBookies, QuorumError

__all__ = ["RegionPlacement"]

UNKNOWN = "UnknownRegion"
DURABLE_MIN = 2


class Regions:
    """The candidates by region, and within each region by rack."""

    def __init__(self, racks: Racks, region_of: Callable[[str], str], part: Callable[[Sequence[str]], Racks]) -> None:
        self.all = racks
        self.of = {bookie: region_of(rack) for bookie, rack in racks.rack_of.items()}
        members: dict[str, list[str]] = {}
        for bookie, region in self.of.items():
            members.setdefault(region, []).append(bookie)
        self.racks = {region: part(members[region]) for region in sorted(members)}
        self.names = list(self.racks)


class Ensemble:
    """An ensemble that grows region by region."""

    __slots__ = ("_of", "_rule", "bookies", "durable")

    def __init__(self, rule: Spread | RegionDurability, of: Mapping[str, str]) -> None:
        self.bookies: list[str] = []
        self.durable = isinstance(rule, RegionDurability)
        self._rule = rule
        self._of = of

    def copy(self) -> "Ensemble":
        """Return a copy, to try two ways of growing."""
        twin = Ensemble(self._rule.copy(), self._of)
        twin.bookies = self.bookies.copy()
        return twin

    def accepts(self, bookie: str) -> bool:
        """Return whether this bookie may be the next one."""
        return self._rule.accepts(self._of[bookie])

    def add(self, bookie: str) -> None:
        """Add the next bookie."""
        self._rule.add(self._of[bookie])
        self.bookies.append(bookie)


class RegionPlacement(PlacedPolicy):
    """The region-aware policy. It corresponds to Apache BookKeeper's RegionAwareEnsemblePlacementPolicy."""

    def __init__(
        self,
        config: ClientConfig,
        random: Random,
        clock: Callable[[], float],
        locations: Locations,
        local: str,
        features: Features | None = None,
    ) -> None:
        """Raises ConfigurationError if durability demands more regions than there are to write to."""
        super().__init__(config, random, clock, locations, local)
        listed = [region for region in config.regions.split(";") if region]
        self._durable_regions = 0
        if listed:
            configured = config.regions_durable_min
            self._durable_regions = DURABLE_MIN if configured < 0 else configured
        if len(listed) < self._durable_regions:
            raise ConfigurationError(
                f"reppMinimumRegionsForDurability={self._durable_regions}: "
                f"reppRegionsToWrite={config.regions} names {len(listed)} regions; it must name at least that many"
            )
        self._features = features or Features()
        self._disallowed: frozenset[str] = frozenset()
        self.choice = RackChoice(config, locations.default, local)
        self.region = self.region_of(local)
        self._regions: Regions | None = None
        self._turn = 0

    @property
    def durable_regions(self) -> int:
        """In how many regions an ensemble is durable: it survives the loss of all but one of them. 0 if that is not
        demanded.
        """
        return 0 if self._features.on(self.config.regions_durability_feature) else self._durable_regions

    def region_of(self, location: str) -> str:
        """Return the first component of a location, or UnknownRegion for the default location."""
        return UNKNOWN if location == self.locations.default else location.split("/", 2)[1]

    def changed(self) -> None:
        super().changed()
        self._regions = None

    def regions_of(self, racks: Racks) -> Regions:
        """Return these candidates by region, without the disallowed regions. The result for all writable bookies is
        kept.
        """
        name = self.config.regions_disallow_feature
        disallowed = self._features.scopes(name) if name else frozenset()
        kept = racks is self.racks
        if kept and self._regions is not None and disallowed == self._disallowed:
            return self._regions
        if disallowed:
            left = [one for one, rack in racks.rack_of.items() if self.region_of(rack) not in disallowed]
            racks = self.racks_of(left)
        regions = Regions(racks, self.region_of, self.racks_of)
        if kept:
            self._regions, self._disallowed = regions, disallowed
        return regions

    def new_ensemble(
        self,
        ensemble_size: int,
        write_quorum: int,
        ack_quorum: int,
        *,
        excluded: Collection[str] = (),
        custom: Mapping[str, bytes] | None = None,
    ) -> tuple[str, ...]:
        """Choose an ensemble. Raises NotEnoughBookies, or QuorumError if such quorums cannot be durable in regions."""
        self._check(ensemble_size, write_quorum, ack_quorum)
        return self.either(
            lambda racks: self._ensemble(
                self.regions_of(racks), ensemble_size, write_quorum, ack_quorum, frozenset(excluded)
            )
        )

    def _check(self, size: int, write_quorum: int, ack_quorum: int) -> None:
        durable = self.durable_regions
        sizes = f"ensembleSize={size} writeQuorum={write_quorum} ackQuorum={ack_quorum}"
        if not size >= write_quorum >= ack_quorum:
            raise QuorumError(f"{sizes}: no size may exceed the one before it")
        if durable and (ack_quorum < durable or ack_quorum <= write_quorum - write_quorum // durable):
            raise QuorumError(
                f"{sizes}: the ack quorum is too small for reppMinimumRegionsForDurability={durable}; use a larger one"
            )

    def _rule(self, size: int, write_quorum: int, ack_quorum: int) -> Spread | RegionDurability:
        if self.durable_regions:
            return RegionDurability(size, write_quorum, ack_quorum, self.durable_regions)
        return Spread(size, write_quorum, self.config.racks_min)

    def _ensemble(
        self, regions: Regions, size: int, write_quorum: int, ack_quorum: int, excluded: frozenset[str]
    ) -> tuple[str, ...]:
        if not regions.names:
            raise not_enough(size, (), excluded)
        if len(regions.names) == 1 and not self.durable_regions:
            return self.choice.ensemble(regions.racks[regions.names[0]], size, write_quorum, excluded)
        grown = Ensemble(self._rule(size, write_quorum, ack_quorum), regions.of)
        if len(regions.names) == 1:
            return self.choice.ensemble(regions.racks[regions.names[0]], size, write_quorum, excluded, grown)
        bookies = Allocation(self.choice, regions, self._order(regions), excluded).spread(size, write_quorum, grown)
        reached = {regions.of[bookie] for bookie in bookies}
        # Regions that had no turn go first the next time; if all had one, another region gets the odd bookie.
        others = len(reached - {self.region})
        self._turn += others if others < len(regions.names) - (self.region in regions.racks) else 1
        if len(bookies) < size or (self.config.regions_validated and len(reached) < self.durable_regions):
            why = f"in {len(regions.names)} regions"
            raise not_enough(size, regions.of, excluded, why)
        return tuple(bookies)

    def _order(self, regions: Regions) -> list[str]:
        """Return the client's region, then the others, beginning where the last ensemble ended."""
        names = regions.names
        if self.region in regions.racks:
            others = [name for name in names if name != self.region]
            start = self._turn % len(others) if others else 0
            order = [self.region, *others[start:], *others[:start]]
        else:
            start = self._turn % len(names)
            order = [*names[start:], *names[:start]]
        return order

    def replacement(
        self,
        write_quorum: int,
        ack_quorum: int,
        ensemble: Sequence[str],
        index: int,
        *,
        excluded: Collection[str] = (),
        custom: Mapping[str, bytes] | None = None,
    ) -> str:
        """Choose a bookie of the same rack, or else the same region, or else any that durability allows.

        Raises NotEnoughBookies.
        """
        return self.either(
            lambda racks: self._replacement(
                self.regions_of(racks), write_quorum, ack_quorum, ensemble, index, {*excluded, *ensemble}
            )
        )

    def _replacement(
        self,
        regions: Regions,
        write_quorum: int,
        ack_quorum: int,
        ensemble: Sequence[str],
        index: int,
        excluded: Collection[str],
    ) -> str:
        old = self.locations.of(ensemble[index])
        taken = self.choice.taken(regions.all, excluded)
        near = regions.racks.get(self.region_of(old))
        if near is not None:
            bookie = near.inside(old).choose(taken.__contains__) or near.all.choose(taken.__contains__)
            if bookie is not None:
                return bookie
        rule = None
        if self.durable_regions and self.config.regions_durable_in_replace:
            rule = RegionDurability(len(ensemble), write_quorum, ack_quorum, self.durable_regions)
            for place, member in enumerate(ensemble):
                region = self.region_of(self.locations.of(member))
                if place == index:
                    continue
                if not rule.accepts(region):
                    # An old ensemble that uses too few regions anyway can take any bookie.
                    rule = None
                    break
                rule.add(region)

        def refused(bookie: str) -> bool:
            return bookie in taken or (rule is not None and not rule.accepts(regions.of[bookie]))

        bookie = regions.all.all.choose(refused)
        if bookie is None:
            raise not_enough(1, regions.of, taken, f"in {len(regions.names)} regions")
        return bookie

    def neighbours(self, bookie: str) -> Collection[str]:
        """Return the writable bookies of the same region."""
        region = self.region_of(self.locations.of(bookie))
        return [one for one in self.writable if self.region_of(self.locations.of(one)) == region]

    def read_order(
        self, ensemble: Sequence[str], write_set: Sequence[int], pending: Callable[[str], int]
    ) -> Sequence[int]:
        """Put the client's own region first, and another region behind two replicas of it.

        If the client's region is unknown, the order is that of the rack-aware policy.
        """
        remote = None
        if self.region != UNKNOWN:

            def remote(bookie: str) -> bool:
                return self.region_of(self.locations.of(bookie)) != self.region

        return self.reads.order(
            ensemble, write_set, pending, writable=self.members, read_only=self.read_only, remote=remote
        )


class Allocation:
    """How many bookies each region contributes: evenly, except that other regions fill in for those that have too
    few.
    """

    def __init__(self, choice: RackChoice, regions: Regions, order: Sequence[str], excluded: Collection[str]) -> None:
        self._choice = choice
        self._regions = regions
        self._order = order
        self._excluded = excluded
        self._exhausted: set[str] = set()
        self._given = dict.fromkeys(order, (0, 0))
        self._left = (0, 0)

    def spread(self, size: int, write_quorum: int, empty: Ensemble) -> list[str]:
        """Return the bookies; fewer than `size` if the regions together do not have enough."""
        self._left = (size, write_quorum)
        while True:
            before = self._left[0]
            grown = self._round(size, write_quorum, empty.copy())
            if not 0 < self._left[0] < before or len(self._exhausted) == len(self._order):
                return grown.bookies

    def _round(self, size: int, write_quorum: int, grown: Ensemble) -> Ensemble:
        sharing = len(self._order) - len(self._exhausted)
        for region in self._order:
            if region not in self._exhausted:
                more = self._more(region, sharing, size, write_quorum, grown)
                if more is None:
                    self._exhausted.add(region)
                else:
                    grown = more
                    sharing -= 1
            if region in self._exhausted and self._given[region][0]:
                grown = self._placed(region, *self._given[region], grown) or grown
        return grown

    def _more(self, region: str, sharing: int, size: int, write_quorum: int, grown: Ensemble) -> Ensemble | None:
        """Add an even share of what is left, or as much of it as the region has."""
        left, quorum_left = self._left
        given, quorum_given = self._given[region]
        for share in range(-(-left // sharing), 0, -1):
            quorum = max(1, min(quorum_left, int(write_quorum * share / size + 0.5)))
            further = self._placed(region, given + share, quorum_given + quorum, grown)
            if further is not None:
                self._left = (left - share, quorum_left - quorum)
                self._given[region] = (given + share, quorum_given + quorum)
                return further
        return None

    def _placed(self, region: str, count: int, write_quorum: int, grown: Ensemble) -> Ensemble | None:
        further = grown.copy() if count > 1 else grown  # a failed attempt to add a single bookie adds nothing
        try:
            self._choice.ensemble(
                self._regions.racks[region], count, write_quorum, {*self._excluded, *grown.bookies}, further
            )
        except NotEnoughBookies:
            return None
        return further
