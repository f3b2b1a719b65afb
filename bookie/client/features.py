"""Switches of a client that are thrown while it runs: what Apache BookKeeper calls features. Any thread.

    disable_ensemble_change                 who fails while a ledger is written is not replaced but asked again
    repp_disable_durability_enforcement     region-aware ensembles need not outlive regions
    REGION.NAME                             nothing is placed in that region

The first two names are the defaults of `disableEnsembleChangeFeatureName` and `reppDisableDurabilityFeatureName`;
`reppDisallowBookiePlacementInRegionFeatureName` says which NAME.
"""

from collections.abc import Iterable
from typing import Self

__all__ = ["Features"]


class Features:
    """All off but those given."""

    def __init__(self, on: Iterable[str] = ()) -> None:
        self._on = frozenset(on)

    @classmethod
    def named(cls, names: str) -> Self:
        """Those, separated by commas."""
        return cls(name.strip() for name in names.split(",") if name.strip())

    def on(self, name: str) -> bool:
        """Whether it is."""
        return name in self._on

    def scopes(self, name: str) -> frozenset[str]:
        """Each SCOPE for which SCOPE.NAME is on."""
        return frozenset(one.removesuffix(f".{name}") for one in self._on if one.endswith(f".{name}"))

    def switch(self, name: str, *, on: bool) -> None:
        """From now on it is, or is not. What was chosen before stays."""
        self._on = self._on | {name} if on else self._on - {name}
