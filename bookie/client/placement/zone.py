"""Zone-aware placement: quorums span zones, and upgrade domains within a zone. A location is /zone/upgradeDomain.

One event loop. Upstream's ZoneawareEnsemblePlacementPolicy; reads are ordered as the rack-aware policy orders them.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from random import Random

from bookie.client.config import ClientConfig
from bookie.client.contracts import Adherence
from bookie.client.placement.base import not_enough
from bookie.client.placement.locations import Locations
from bookie.client.placement.placed import PlacedPolicy, depth
from bookie.client.placement.racks import Racks
from bookie.errors import ConfigurationError, QuorumError

__all__ = ["ZonePlacement"]

Place = tuple[str, str]


class ZonePlacement(PlacedPolicy):
    """`enforceStrictZoneawarePlacement=false` takes any bookies."""

    def __init__(
        self, config: ClientConfig, random: Random, clock: Callable[[], float], locations: Locations, local: str
    ) -> None:
        """ConfigurationError when more zones are required than desired."""
        super().__init__(config, random, clock, locations, local)
        if config.zones_min > config.zones_desired:
            raise ConfigurationError(
                f"minNumZonesPerWriteQuorum={config.zones_min}: it must be at most "
                f"desiredNumZonesPerWriteQuorum={config.zones_desired}"
            )
        self._nowhere = self._split(locations.default)

    def _split(self, location: str) -> Place:
        if depth(location) != 2:
            return self._nowhere
        zone, domain = location[1:].split("/")
        return zone, domain

    def _place(self, bookie: str) -> Place:
        return self._split(self.locations.of(bookie))

    def new_ensemble(
        self,
        ensemble_size: int,
        write_quorum: int,
        ack_quorum: int,
        *,
        excluded: Collection[str] = (),
        custom: Mapping[str, bytes] | None = None,
    ) -> tuple[str, ...]:
        """QuorumError when ensembles of such a size could not keep their zones; NotEnoughBookies."""
        zones = self.config.zones_min
        if self.config.zones_strict and (ensemble_size % write_quorum or write_quorum <= zones):
            raise QuorumError(
                f"ensembleSize={ensemble_size} writeQuorum={write_quorum}: enforceStrictZoneawarePlacement needs "
                f"a multiple of the write quorum, and one above minNumZonesPerWriteQuorum={zones}"
            )
        return self.either(lambda racks: self._ensemble(racks, ensemble_size, write_quorum, excluded))

    def _ensemble(self, racks: Racks, size: int, write_quorum: int, excluded: Collection[str]) -> tuple[str, ...]:
        places: list[Place | None] = [None] * size
        taken = set(excluded)
        chosen = []
        for index in range(size):
            bookie = self._choose(racks, write_quorum, places, index, taken)
            taken.add(bookie)
            chosen.append(bookie)
            places[index] = self._place(bookie)
        return tuple(chosen)

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
        """NotEnoughBookies."""
        places: list[Place | None] = [self._place(bookie) for bookie in ensemble]
        taken = {*excluded, *ensemble}
        return self.either(lambda racks: self._choose(racks, write_quorum, places, index, taken))

    def _choose(
        self, racks: Racks, write_quorum: int, places: Sequence[Place | None], index: int, taken: Collection[str]
    ) -> str:
        """For one place: by zones of fewer and fewer neighbours, and last by what a quorum needs at least."""
        if not self.config.zones_strict:
            bookie = racks.outside((), taken.__contains__, taken)
            if bookie is None:
                raise not_enough(1, racks.rack_of, taken)
            return bookie
        desired = min(write_quorum, self.config.zones_desired)
        for neighbours in range(desired - 1, self.config.zones_min - 2, -1):
            near = _others(places, index, neighbours)
            bookie = self._outside(racks, {place[0] for place in near}, write_quorum, places, index, taken)
            if bookie is not None:
                return bookie
        needed: set[str] = set()
        for quorum in _quorums(places, index, write_quorum):
            zones = {place[0] for place in quorum}
            if len(zones) < self.config.zones_min:
                needed |= zones
        bookie = self._outside(racks, needed, write_quorum, places, index, taken)
        if bookie is None:
            raise not_enough(1, racks.rack_of, taken, f"in {len({rack.split('/')[1] for rack in racks.members})} zones")
        return bookie

    def _outside(
        self,
        racks: Racks,
        zones: Collection[str],
        write_quorum: int,
        places: Sequence[Place | None],
        index: int,
        taken: Collection[str],
    ) -> str | None:
        """In another zone than these, in an upgrade domain that is new to its quorums, or at least not the only one."""
        near = set(_others(places, index, write_quorum - 1))
        lone: set[Place] = set()
        for quorum in _quorums(places, index, write_quorum):
            domains: dict[str, set[Place]] = {}
            for place in quorum:
                domains.setdefault(place[0], set()).add(place)
            for found in domains.values():
                if len(found) == 1:
                    lone |= found
        open_racks = [
            (rack, place)
            for rack in racks.members
            if (place := self._split(rack))[0] not in zones and rack != self.locations.default
        ]
        for barred in (near, lone):
            bookie = self._drawn(racks, {rack for rack, place in open_racks if place not in barred}, taken)
            if bookie is not None:
                return bookie
        return None

    def _drawn(self, racks: Racks, among: Collection[str], taken: Collection[str]) -> str | None:
        """By weight, which the candidates themselves bound: upstream's dynamic selector."""
        avoided = [rack for rack in racks.members if rack not in among]
        return racks.outside(avoided, taken.__contains__, taken)

    def adheres(self, ensemble: Sequence[str], write_quorum: int, ack_quorum: int) -> Adherence:
        """MEETS_STRICT with the zones that are desired in each quorum, MEETS_SOFT with those that are required."""
        config = self.config
        if not ensemble or len(ensemble) % write_quorum or write_quorum <= config.zones_min:
            return Adherence.FAIL
        places: list[Place | None] = [self._place(bookie) for bookie in ensemble]
        if self._nowhere in places:
            return Adherence.FAIL
        fewest = write_quorum
        for start in range(len(places)):
            quorum = [place for step in range(write_quorum) if (place := places[(start + step) % len(places)])]
            crowd = Counter(zone for zone, _ in quorum)
            domains = Counter(zone for zone, _ in set(quorum))
            if any(count > 1 and domains[zone] < 2 for zone, count in crowd.items()):
                return Adherence.FAIL
            fewest = min(fewest, len(crowd))
        if fewest < config.zones_min:
            return Adherence.FAIL
        return Adherence.MEETS_STRICT if fewest >= min(write_quorum, config.zones_desired) else Adherence.MEETS_SOFT

    def spans_fault_domains(self, acked: Collection[str], write_quorum: int, ack_quorum: int) -> bool:
        """Whether an ack quorum of them stands in enough zones."""
        zones = {self._place(bookie)[0] for bookie in acked}
        return len(zones) >= min(write_quorum, self.config.zones_min) and len(acked) >= ack_quorum


def _others(places: Sequence[Place | None], index: int, reach: int) -> list[Place]:
    """The places up to so far to the left and to the right that are known."""
    size = len(places)
    steps = [*range(-reach, 0), *range(1, reach + 1)]
    return [place for step in steps if (place := places[(index + step) % size]) is not None]


def _quorums(places: Sequence[Place | None], index: int, write_quorum: int) -> Iterator[list[Place]]:
    """What is known of the other members of each write quorum through a place."""
    size = len(places)
    for start in range(index - write_quorum + 1, index + 1):
        steps = range(start, start + write_quorum)
        yield [place for step in steps if step % size != index and (place := places[step % size]) is not None]
