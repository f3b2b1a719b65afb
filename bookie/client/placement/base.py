"""What all policies know about the cluster, and the behaviour that they share unless they override it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from random import Random

from bookie.client.config import ClientConfig
from bookie.client.contracts import Adherence, Drawn, Placement
from bookie.client.placement.load import weights_of
from bookie.client.placement.pool import Pool
from bookie.client.placement.weights import Limits, limits_of
from bookie.client.wire.bookie_space import BookieInfo
from bookie.errors import NotEnoughBookies
from bookie.plural import counted

__all__ = ["not_enough", "Policy"]


class Policy(Placement):
    """The registered bookies and their free space. What is derived from them is computed on demand, once per change.

    Bookies are kept sorted, so that the same cluster and the same randomness always give the same choices.
    """

    def __init__(self, config: ClientConfig, random: Random) -> None:
        self.config = config
        self.random = random
        self.writable: tuple[str, ...] = ()
        self.read_only: frozenset[str] = frozenset()
        self.members: frozenset[str] = frozenset()
        self.info: Mapping[str, BookieInfo] = {}
        self.weights: Mapping[str, int] = {}
        self._draws: dict[str, Drawn] = {}
        self._all: Pool | None = None

    def bookies_changed(self, writable: frozenset[str], read_only: frozenset[str]) -> None:
        """Take over the registered bookies. Only writable ones are candidates; a bookie in both sets counts as
        read-only.
        """
        self.members = writable - read_only
        self.writable = tuple(sorted(self.members))
        self.read_only = read_only
        for gone in self._draws.keys() - writable - read_only:
            del self._draws[gone]
        self.changed()

    def info_changed(self, known: Mapping[str, BookieInfo]) -> None:
        """Take over what bookies told, and weigh them by it."""
        self.info = dict(known)
        self.weights_changed(weights_of(known, self.config.load_weight))

    def weights_changed(self, weights: Mapping[str, int]) -> None:
        """Take over the weights of the bookies: their free bytes, unless load counts as well. Those of bookies that are
        not named are unknown.
        """
        self.weights = dict(weights)
        if self.config.weighted_placement:
            self.changed()

    @property
    def drawn(self) -> Mapping[str, Drawn]:
        return self._draws

    def note(self, bookie: str, weight: float) -> None:
        """Note that a bookie was drawn with this weight."""
        drawn = self._draws.get(bookie)
        if drawn is None:
            drawn = self._draws[bookie] = Drawn()
        drawn.count += 1
        drawn.capped += weight < self.weights.get(bookie, 0)
        drawn.weight = weight

    def changed(self) -> None:
        """Drop what was derived from the bookies."""
        self._all = None

    def limits(self, bookies: Sequence[str]) -> Limits:
        """Return the limits of the weights of these candidates."""
        weights = [self.weights.get(bookie, 0) for bookie in bookies]
        return limits_of(weights, self.config.weight_multiple_max, self.config.weight_cap)

    def pool(self, bookies: Sequence[str]) -> Pool:
        """Return a pool to draw from these candidates, by weight if that is configured."""
        if not self.config.weighted_placement or not bookies:
            return Pool(bookies, None, self.random)
        limits = self.limits(bookies)
        weights = [limits.weight(self.weights.get(bookie, 0)) for bookie in bookies]
        return Pool(bookies, weights, self.random, self.note)

    @property
    def all(self) -> Pool:
        """A pool of all writable bookies."""
        if self._all is None:
            self._all = self.pool(self.writable)
        return self._all

    def anywhere(self, count: int, excluded: Collection[str]) -> tuple[str, ...]:
        """Choose `count` different bookies, none of them excluded. Raises NotEnoughBookies."""
        taken = set(excluded)
        chosen = []
        for _ in range(count):
            bookie = self.all.choose(taken.__contains__)
            if bookie is None:
                raise not_enough(count, self.writable, excluded)
            taken.add(bookie)
            chosen.append(bookie)
        return tuple(chosen)

    def neighbours(self, bookie: str) -> Collection[str]:
        """Return none, since there are no fault domains that are lost as a whole."""
        return ()

    def read_order(
        self,
        ensemble: Sequence[str],
        write_set: Sequence[int],
        pending: Callable[[str], int],
    ) -> Sequence[int]:
        """Return the write set unchanged."""
        return write_set

    def spans_fault_domains(
        self,
        acked: Collection[str],
        write_quorum: int,
        ack_quorum: int,
    ) -> bool:
        """Return True, since there are no fault domains."""
        return True

    def adheres(
        self,
        ensemble: Sequence[str],
        write_quorum: int,
        ack_quorum: int,
    ) -> Adherence:
        """Return that every ensemble satisfies the policy."""
        return Adherence.MEETS_STRICT

    def slow(self, bookie: str) -> None:
        """Do nothing, since reads have a fixed order."""

    def failed(self, bookie: str, entry: int) -> None:
        """Do nothing, since reads have a fixed order."""


def not_enough(count: int, writable: Collection[str], excluded: Collection[str], why: str = "") -> NotEnoughBookies:
    """Return the error, with the number of bookies that exist."""
    out = sum(bookie in writable for bookie in set(excluded))
    present = f"{len(writable)} {'is' if len(writable) == 1 else 'are'} writable"
    present += (f", {out} of them excluded" if out else "") + (f", {why}" if why else "")
    needed = f"{counted(count, 'bookie')} needed"
    return NotEnoughBookies(f"{needed}, {present}: start more bookies, or request a smaller ensemble")
