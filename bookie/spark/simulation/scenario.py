"""What a simulation of placement is asked: plain values, picklable, the same run for the same values."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
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
    """So many empty bookies join when `after` of all ledgers are written, 0 to 1."""

    bookies: int
    after: float


@dataclass(frozen=True, slots=True)
class Topology:
    """The cluster at the start. Bytes; fills are shares of a disk, evenly spread from `filled_min` to `filled_max`."""

    bookies: int
    racks: int
    disk_bytes: tuple[int, ...]
    """Sizes of disks; bookies have them in turn."""
    filled_min: float
    filled_max: float
    full_at: float
    """The used share of a disk at which its bookie becomes read-only."""
    growth: tuple[Growth, ...] = ()

    @property
    def bookies_max(self) -> int:
        """When all have joined."""
        return self.bookies + sum(one.bookies for one in self.growth)

    def disks(self) -> Floats:
        """Of all bookies that will ever be."""
        return np.resize(np.array(self.disk_bytes, dtype=np.float64), self.bookies_max)

    def used(self, random: np.random.Generator) -> Floats:
        """Bytes that are used at the start; nothing by those who join later."""
        filled = np.zeros(self.bookies_max)
        filled[: self.bookies] = random.uniform(self.filled_min, self.filled_max, self.bookies)
        return filled * self.disks()


@dataclass(frozen=True, slots=True)
class Load:
    """What is written. `ledger_bytes`: the mean; `spread`: the standard deviation of its logarithm."""

    ledgers: int
    ledger_bytes: float
    spread: float
    bytes_per_s: float
    ensemble: int
    write_quorum: int
    retention_s: float = 0.0
    """After how long a ledger goes; 0: never."""

    @property
    def duration_s(self) -> float:
        """Until the last ledger is written."""
        return self.ledgers * self.ledger_bytes / self.bytes_per_s


@dataclass(frozen=True, slots=True)
class Weights:
    """How free space counts: not at all where `multiple` is None. `multiple` 0: no cap. `cap`: `median` or `min`."""

    name: str
    multiple: int | None
    cap: str = "median"

    @classmethod
    def parse(cls, text: str) -> "Weights":
        """`uniform`, `uncapped`, `median:3`, `min:3`. IncorrectParameter."""
        if text == "uniform":
            return cls(text, None)
        if text == "uncapped":
            return cls(text, 0)
        cap, _, multiple = text.partition(":")
        if cap not in {"median", "min"} or not multiple.isdigit() or int(multiple) < 1:
            raise IncorrectParameter(f"weights {text!r}: uniform, uncapped, median:N or min:N with N from 1 on")
        return cls(text, int(multiple), cap)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run. `poll_s`: how often clients ask bookies for their free space; all of them at the same time."""

    topology: Topology
    load: Load
    policy: str
    weights: Weights
    poll_s: float
    seed: int

    @property
    def name(self) -> str:
        """Among the runs of a job."""
        return f"{self.policy} {self.weights.name} seed {self.seed}"

    def values(self) -> dict[str, Any]:
        """All of it, for a summary."""
        return asdict(self)

    def placement(self, racks: Mapping[str, str]) -> Policy:
        """The client's policy, with the client's configuration; nobody is known yet. `racks`: by bookie."""
        settings = {"ensemblePlacementPolicy": self.policy, "ignoreLocalNodeInPlacementPolicy": "true"}
        if self.weights.multiple is not None:
            settings["diskWeightBasedPlacementEnabled"] = "true"
            settings["bookieMaxMultipleForWeightBasedPlacement"] = str(self.weights.multiple)
            settings["diskWeightCapMode"] = self.weights.cap
        config = ClientConfig.of(settings)
        policy = placement_for(config, Random(self.seed), float, resolver=InRacks(racks), hosts=str)
        assert isinstance(policy, Policy)
        return policy


class InRacks(Resolver):
    """Where modelled bookies stand."""

    by_name = True

    def __init__(self, racks: Mapping[str, str]) -> None:
        self._racks = racks

    def resolve(self, hosts: Any) -> Any:
        """By name."""
        return [self._racks.get(host) for host in hosts]
