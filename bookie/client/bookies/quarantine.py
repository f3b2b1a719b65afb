"""A placement policy that avoids quarantined bookies as long as there are enough others. Reads are not affected."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from bookie.client.contracts import Adherence, Drawn, Placement
from bookie.client.wire.bookie_space import BookieInfo
from bookie.errors import NotEnoughBookies

T = TypeVar("T")


class WithoutQuarantined:
    """Choices of the policy `inner`, without the bookies that `quarantined` returns. See `contracts.Placement`."""

    def __init__(self, inner: Placement, quarantined: Callable[[], frozenset[str]]) -> None:
        self._inner = inner
        self._quarantined = quarantined

    def new_ensemble(
        self,
        ensemble_size: int,
        write_quorum: int,
        ack_quorum: int,
        *,
        excluded: Collection[str] = (),
        custom: Mapping[str, bytes] | None = None,
    ) -> tuple[str, ...]:
        """Choose an ensemble. Raises NotEnoughBookies if there are too few even with the quarantined bookies."""

        def choose(out: Collection[str]) -> tuple[str, ...]:
            return self._inner.new_ensemble(ensemble_size, write_quorum, ack_quorum, excluded=out, custom=custom)

        return self._first_without(excluded, choose)

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
        """Choose a replacement. Raises NotEnoughBookies if there is none even among the quarantined bookies."""

        def choose(out: Collection[str]) -> str:
            return self._inner.replacement(write_quorum, ack_quorum, ensemble, index, excluded=out, custom=custom)

        return self._first_without(excluded, choose)

    def _first_without(self, excluded: Collection[str], choose: Callable[[Collection[str]], T]) -> T:
        quarantined = self._quarantined()
        if quarantined:
            try:
                return choose(quarantined.union(excluded))
            except NotEnoughBookies:
                pass
        return choose(excluded)

    # --- the rest is the policy's own ---------------------------------------------------------------------------------

    def bookies_changed(self, writable: frozenset[str], read_only: frozenset[str]) -> None:
        self._inner.bookies_changed(writable, read_only)

    def info_changed(self, known: Mapping[str, BookieInfo]) -> None:
        self._inner.info_changed(known)

    @property
    def drawn(self) -> Mapping[str, Drawn]:
        return self._inner.drawn

    def neighbours(self, bookie: str) -> Collection[str]:
        return self._inner.neighbours(bookie)

    def read_order(
        self, ensemble: Sequence[str], write_set: Sequence[int], pending: Callable[[str], int]
    ) -> Sequence[int]:
        return self._inner.read_order(ensemble, write_set, pending)

    def spans_fault_domains(self, acked: Collection[str], write_quorum: int, ack_quorum: int) -> bool:
        return self._inner.spans_fault_domains(acked, write_quorum, ack_quorum)

    def adheres(self, ensemble: Sequence[str], write_quorum: int, ack_quorum: int) -> Adherence:
        return self._inner.adheres(ensemble, write_quorum, ack_quorum)

    def slow(self, bookie: str) -> None:
        self._inner.slow(bookie)

    def failed(self, bookie: str, entry: int) -> None:
        self._inner.failed(bookie, entry)
