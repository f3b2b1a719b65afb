"""Rack-aware placement, the default: every write quorum spans `minNumRacksPerWriteQuorum` racks if possible."""

from collections.abc import Callable, Collection, Mapping, Sequence
from random import Random

from bookie.client.config import ClientConfig
from bookie.client.contracts import Adherence
from bookie.client.placement.coverage import covered
from bookie.client.placement.locations import Locations
from bookie.client.placement.placed import PlacedPolicy
from bookie.client.placement.rack_choice import RackChoice

__all__ = ["RackPlacement"]


class RackPlacement(PlacedPolicy):
    """The rack-aware policy. If no locations are known, all bookies are in the same rack and any of them are chosen."""

    def __init__(
        self, config: ClientConfig, random: Random, clock: Callable[[], float], locations: Locations, local: str
    ) -> None:
        super().__init__(config, random, clock, locations, local)
        self.choice = RackChoice(config, locations.default, local)

    def new_ensemble(
        self,
        ensemble_size: int,
        write_quorum: int,
        ack_quorum: int,
        *,
        excluded: Collection[str] = (),
        custom: Mapping[str, bytes] | None = None,
    ) -> tuple[str, ...]:
        """Choose an ensemble. Raises NotEnoughBookies, also if racks are enforced and cannot be satisfied."""
        return self.either(lambda racks: self.choice.ensemble(racks, ensemble_size, write_quorum, excluded))

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
        places = [self.locations.of(bookie) for bookie in ensemble]
        taken = {*excluded, *ensemble}
        return self.either(lambda racks: self.choice.replacement(racks, write_quorum, places, index, taken))

    def adheres(self, ensemble: Sequence[str], write_quorum: int, ack_quorum: int) -> Adherence:
        """Return FAIL if a write quorum spans too few racks. As in Apache BookKeeper, only writable bookies count."""
        place_of = self.racks.rack_of.get
        if not ensemble or not covered(ensemble, write_quorum, self.choice.racks_min, place_of):
            return Adherence.FAIL
        if self.choice.enforced and any(place_of(bookie) == self.locations.default for bookie in ensemble):
            return Adherence.FAIL
        return Adherence.MEETS_STRICT
