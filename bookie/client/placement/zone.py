"""Zone-aware placement: write quorums span zones, and upgrade domains within a zone. A location is
/zone/upgradeDomain.

It corresponds to Apache BookKeeper's ZoneawareEnsemblePlacementPolicy; reads have the order of the rack-aware policy.
One event loop.
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
"""A zone and an upgrade domain."""
AVOIDED_MAX = 4096
"""The number of different sets of zones and domains for which the racks to avoid are kept."""


class ZonePlacement(PlacedPolicy):
    """The zone-aware policy. With `enforceStrictZoneawarePlacement=false` it chooses any bookies."""

    def __init__(
        self, config: ClientConfig, random: Random, clock: Callable[[], float], locations: Locations, local: str
    ) -> None:
        """Raises ConfigurationError if more zones are required than desired."""
        super().__init__(config, random, clock, locations, local)
        self._zones: Zones | None = None
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

    def changed(self) -> None:
        super().changed()
        self._zones = None

    def _zoned(self, racks: Racks) -> "Zones":
        if self._zones is None or self._zones.racks is not racks:
            self._zones = Zones(racks, {rack: self._split(rack) for rack in racks.members}, self.locations.default)
        return self._zones

    def new_ensemble(
        self,
        ensemble_size: int,
        write_quorum: int,
        ack_quorum: int,
        *,
        excluded: Collection[str] = (),
        custom: Mapping[str, bytes] | None = None,
    ) -> tuple[str, ...]:
        """Choose an ensemble. Raises NotEnoughBookies, or QuorumError if ensembles of this size cannot span enough
        zones.
        """
        zones = self.config.zones_min
        if self.config.zones_strict and (ensemble_size % write_quorum or write_quorum <= zones):
            raise QuorumError(
                f"ensembleSize={ensemble_size} writeQuorum={write_quorum}: with enforceStrictZoneawarePlacement the "
                "ensemble must be a multiple of the write quorum, and the write quorum above "
                f"minNumZonesPerWriteQuorum={zones}"
            )
        return self.either(lambda racks: self._ensemble(racks, ensemble_size, write_quorum, excluded))

    def _ensemble(self, racks: Racks, size: int, write_quorum: int, excluded: Collection[str]) -> tuple[str, ...]:
        places: list[Place | None] = [None] * size
        zoned = self._zoned(racks)
        taken = set(excluded)
        chosen = []
        for index in range(size):
            bookie = self._choose(zoned, write_quorum, places, index, taken)
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
        places: list[Place | None] = [self._place(bookie) for bookie in ensemble]
        taken = {*excluded, *ensemble}
        return self.either(lambda racks: self._choose(self._zoned(racks), write_quorum, places, index, taken))

    def _choose(
        self, zoned: "Zones", write_quorum: int, places: Sequence[Place | None], index: int, taken: Collection[str]
    ) -> str:
        """Choose a bookie for one place, outside the zones of ever fewer neighbours, and finally as the write
        quorums require.
        """
        racks = zoned.racks
        if not self.config.zones_strict:
            bookie = racks.outside((), taken.__contains__, taken)
            if bookie is None:
                raise not_enough(1, racks.rack_of, taken)
            return bookie
        desired = min(write_quorum, self.config.zones_desired)
        for neighbours in range(desired - 1, self.config.zones_min - 2, -1):
            near = _others(places, index, neighbours)
            bookie = self._outside(zoned, frozenset([place[0] for place in near]), write_quorum, places, index, taken)
            if bookie is not None:
                return bookie
        needed: set[str] = set()
        for quorum in _quorums(places, index, write_quorum):
            zones = {place[0] for place in quorum}
            if len(zones) < self.config.zones_min:
                needed |= zones
        bookie = self._outside(zoned, frozenset(needed), write_quorum, places, index, taken)
        if bookie is None:
            raise not_enough(1, racks.rack_of, taken, f"in {len({rack.split('/')[1] for rack in racks.members})} zones")
        return bookie

    def _outside(
        self,
        zoned: "Zones",
        zones: frozenset[str],
        write_quorum: int,
        places: Sequence[Place | None],
        index: int,
        taken: Collection[str],
    ) -> str | None:
        """Choose a bookie outside these zones, in an upgrade domain that is new to its write quorums.

        If there is none, choose one in a domain that is not the only one of its zone in a quorum.
        """
        bookie = self._drawn(zoned, zones, _others(places, index, write_quorum - 1), taken)
        if bookie is not None:
            return bookie
        lone: set[Place] = set()
        for quorum in _quorums(places, index, write_quorum):
            domains: dict[str, set[Place]] = {}
            for place in quorum:
                domains.setdefault(place[0], set()).add(place)
            for found in domains.values():
                if len(found) == 1:
                    lone |= found
        return self._drawn(zoned, zones, lone, taken)

    @staticmethod
    def _drawn(zoned: "Zones", zones: frozenset[str], barred: Collection[Place], taken: Collection[str]) -> str | None:
        """Draw by weight, capped by the candidates themselves, as Apache BookKeeper's dynamic selector does."""
        avoided = zoned.avoided(zones, frozenset(place for place in barred if place[0] not in zones))
        return zoned.racks.outside(avoided, taken.__contains__, taken)

    def adheres(self, ensemble: Sequence[str], write_quorum: int, ack_quorum: int) -> Adherence:
        """Return MEETS_STRICT if each write quorum spans the desired zones, and MEETS_SOFT if it spans the required
        ones.
        """
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
        """Return whether the bookies are an ack quorum and in enough zones."""
        zones = {self._place(bookie)[0] for bookie in acked}
        return len(zones) >= min(write_quorum, self.config.zones_min) and len(acked) >= ack_quorum


class Zones:
    """The candidates by zone and upgrade domain; each rack is one domain. It is kept as long as the racks are."""

    def __init__(self, racks: Racks, places: Mapping[str, Place], nowhere: str) -> None:
        """`nowhere` is the rack of bookies that are never chosen."""
        self.racks = racks
        self._places = places
        self._nowhere = nowhere
        self._avoided: dict[tuple[frozenset[str], frozenset[Place]], frozenset[str]] = {}

    def avoided(self, zones: frozenset[str], domains: frozenset[Place]) -> frozenset[str]:
        """Return the racks in these zones and these domains."""
        found = self._avoided.get((zones, domains))
        if found is None:
            if len(self._avoided) >= AVOIDED_MAX:
                self._avoided.clear()
            found = self._avoided[zones, domains] = frozenset(
                rack
                for rack, place in self._places.items()
                if place[0] in zones or place in domains or rack == self._nowhere
            )
        return found


def _others(places: Sequence[Place | None], index: int, reach: int) -> list[Place]:
    """Return the known places at a distance of up to `reach` to the left and to the right."""
    size = len(places)
    steps = [*range(-reach, 0), *range(1, reach + 1)]
    return [place for step in steps if (place := places[(index + step) % size]) is not None]


def _quorums(places: Sequence[Place | None], index: int, write_quorum: int) -> Iterator[list[Place]]:
    """Yield the known places of the other members of each write quorum through a place."""
    size = len(places)
    for start in range(index - write_quorum + 1, index + 1):
        steps = range(start, start + write_quorum)
        yield [place for step in steps if step % size != index and (place := places[step % size]) is not None]
