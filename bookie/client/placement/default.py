"""Any bookies, by weight if that is configured.

It corresponds to Apache BookKeeper's DefaultEnsemblePlacementPolicy, but never chooses read-only bookies.
"""

from collections.abc import Collection, Mapping, Sequence

from bookie.client.placement.base import Policy, not_enough

__all__ = ["DefaultPlacement"]


class DefaultPlacement(Policy):
    """A policy without network locations."""

    def new_ensemble(
        self,
        ensemble_size: int,
        write_quorum: int,
        ack_quorum: int,
        *,
        excluded: Collection[str] = (),
        custom: Mapping[str, bytes] | None = None,
    ) -> tuple[str, ...]:
        return self.anywhere(ensemble_size, excluded)

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
        taken = {*excluded, *ensemble}
        bookie = self.all.choose(taken.__contains__)
        if bookie is None:
            raise not_enough(1, self.members, taken)
        return bookie
