"""Switches that can be changed while a client runs, which Apache BookKeeper calls features. Any thread.

    disable_ensemble_change                 a bookie that fails while a ledger is written is retried, not replaced
    repp_disable_durability_enforcement     region-aware ensembles need not survive the loss of a region
    REGION.NAME                             no bookie of that region is chosen

The first two names are the defaults of `disableEnsembleChangeFeatureName` and `reppDisableDurabilityFeatureName`;
NAME is the value of `reppDisallowBookiePlacementInRegionFeatureName`.
"""

from collections.abc import Iterable
from typing import Self

__all__ = ["Features"]


class Features:
    """The features of one client. All are off, except those that the constructor is given."""

    def __init__(self, on: Iterable[str] = ()) -> None:
        self._on = frozenset(on)

    @classmethod
    def named(cls, names: str) -> Self:
        """Create the features of a configuration.

        Args:
            names: The names of the features that are on, separated by commas.
        """
        return cls(name.strip() for name in names.split(",") if name.strip())

    def on(self, name: str) -> bool:
        """Return whether a feature is on.

        Args:
            name: The name of the feature.
        """
        return name in self._on

    def scopes(self, name: str) -> frozenset[str]:
        """Return the scopes for which a feature is on.

        Args:
            name: The name of the feature without its scope.

        Returns:
            Each SCOPE for which the feature SCOPE.NAME is on.
        """
        return frozenset(one.removesuffix(f".{name}") for one in self._on if one.endswith(f".{name}"))

    def switch(self, name: str, *, on: bool) -> None:
        """Turn a feature on or off. Bookies that were chosen before stay.

        Args:
            name: The name of the feature.
            on: Whether the feature is on from now on.
        """
        self._on = self._on | {name} if on else self._on - {name}
