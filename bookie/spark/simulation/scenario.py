"""The parameters of a placement simulation: plain, picklable values. The same values give the same run."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bookie.client.config import ClientConfig
from bookie.client.placement.base import Policy
from bookie.client.placement.factory import placement_for
from bookie.client.placement.resolver import Resolver
from bookie.errors import IncorrectParameter

__all__ = ["Growth", "Load", "Scenario", "Topology", "Weights"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Growth:
    """A number of empty bookies that join when the share `after` of all ledgers (0 to 1) is written."""

    bookies: int
    after: float


@dataclass(frozen=True, slots=True)
class Topology:
    """The cluster at the start. The used shares of disks are spread evenly from `filled_min` to `filled_max`."""

    bookies: int
    racks: int
    disk_bytes: tuple[int, ...]
    """The sizes of disks in bytes, assigned to bookies in turn."""
    filled_min: float
    filled_max: float
    full_at: float
    """The used share of a disk at which its bookie becomes read-only."""
    growth: tuple[Growth, ...] = ()

    @property
    def bookies_max(self) -> int:
        """The number of bookies when all have joined."""
        return self.bookies + sum(one.bookies for one in self.growth)

    def disks(self) -> Floats:
        """Return the disk sizes of all bookies, including those that join later."""
        return np.resize(np.array(self.disk_bytes, dtype=np.float64), self.bookies_max)

    def used(self, random: np.random.Generator) -> Floats:
        """Return the bytes used at the start; 0 for bookies that join later."""
        filled = np.zeros(self.bookies_max)
        filled[: self.bookies] = random.uniform(self.filled_min, self.filled_max, self.bookies)
        return filled * self.disks()


@dataclass(frozen=True, slots=True)
class Load:
    """The load: `ledger_bytes` is the mean size of a ledger, `spread` the standard deviation of its logarithm."""

    ledgers: int
    ledger_bytes: float
    spread: float
    bytes_per_s: float
    ensemble: int
    write_quorum: int
    retention_s: float = 0.0
    """The age in seconds at which a ledger is deleted; 0: never."""
    background: float = 0.0
    """Adds by others, which fill no disk here: every tenth bookie has that many times the mean load of the ledgers."""

    @property
    def duration_s(self) -> float:
        """The time in seconds until the last ledger is written."""
        return self.ledgers * self.ledger_bytes / self.bytes_per_s


@dataclass(frozen=True, slots=True)
class Weights:
    """How free space counts in placement. `multiple` None: not at all; 0: without a cap. `cap` is `median` or `min`.

    `load` is how much load counts beside it, from 0 to 1 (`placementLoadWeight`).
    """

    name: str
    multiple: int | None
    cap: str = "median"
    load: float = 0.0

    @classmethod
    def parse(cls, text: str) -> "Weights":
        """Parse `uniform`, `uncapped`, `median:3` or `min:3`, each but the first also with load: `median:3+load:0.5`.

        Raises:
            IncorrectParameter: the text is none of these.
        """
        space, plus, more = text.partition("+")
        if plus:
            kind, _, share = more.partition(":")
            load = float(share) if share.replace(".", "", 1).isdigit() else 0.0
            if kind != "load" or not 0 < load <= 1 or space == "uniform":
                raise IncorrectParameter(f"--weights {text!r}: must end in +load:N, with N above 0 and at most 1")
            return replace(cls.parse(space), name=text, load=load)
        if text == "uniform":
            return cls(text, None)
        if text == "uncapped":
            return cls(text, 0)
        cap, _, multiple = text.partition(":")
        if cap not in {"median", "min"} or not multiple.isdigit() or int(multiple) < 1:
            raise IncorrectParameter(
                f"--weights {text!r}: must be uniform, uncapped, median:N or min:N, with N at least 1"
            )
        return cls(text, int(multiple), cap)


@dataclass(frozen=True, slots=True)
class Scenario:
    """The settings of one simulated run.

    `poll_s` is how often clients poll the bookies' free space, all of them at the same time.
    """

    topology: Topology
    load: Load
    policy: str
    weights: Weights
    poll_s: float
    seed: int

    @property
    def name(self) -> str:
        """The name of the run within a job."""
        return f"{self.policy} {self.weights.name} seed {self.seed}"

    def values(self) -> dict[str, Any]:
        """Return all parameters, for a summary."""
        return asdict(self)

    def placement(self, racks: Mapping[str, str]) -> Policy:
        """Return the client's policy with the client's configuration, without any bookies yet. `racks` has the rack of
        each bookie.
        """
        settings = {"ensemblePlacementPolicy": self.policy, "ignoreLocalNodeInPlacementPolicy": "true"}
        if self.weights.multiple is not None:
            settings["diskWeightBasedPlacementEnabled"] = "true"
            settings["bookieMaxMultipleForWeightBasedPlacement"] = str(self.weights.multiple)
            settings["diskWeightCapMode"] = self.weights.cap
            settings["placementLoadWeight"] = str(self.weights.load)
        config = ClientConfig.of(settings)
        policy = placement_for(config, Random(self.seed), float, resolver=InRacks(racks), hosts=str)
        assert isinstance(policy, Policy)
        return policy


class InRacks(Resolver):
    """Resolves simulated bookies to their racks."""

    by_name = True

    def __init__(self, racks: Mapping[str, str]) -> None:
        self._racks = racks

    def resolve(self, hosts: Any) -> Any:
        """Return the rack of each bookie by its name."""
        return [self._racks.get(host) for host in hosts]
