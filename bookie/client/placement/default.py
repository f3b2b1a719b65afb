"""Any bookies, by weight if so configured: upstream's DefaultEnsemblePlacementPolicy, without read-only ones."""

from collections.abc import Collection, Mapping, Sequence

from bookie.client.placement.base import Policy, not_enough

__all__ = ["DefaultPlacement"]


class DefaultPlacement(Policy):
    """Knows no places."""

    def new_ensemble(
        self,
        ensemble_size: int,
        write_quorum: int,
        ack_quorum: int,
        *,
        excluded: Collection[str] = (),
        custom: Mapping[str, bytes] | None = None,
    ) -> tuple[str, ...]:
        """NotEnoughBookies."""
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
        """NotEnoughBookies."""
        taken = {*excluded, *ensemble}
        bookie = self.all.choose(taken.__contains__)
        if bookie is None:
            raise not_enough(1, self.members, taken)
        return bookie
