"""In which order the replicas of an entry are asked, and requests to them in that order. Event loop."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from bookie.client.ledgers.context import ClientContext
from bookie.client.ledgers.race import MISSING, Patience, Race
from bookie.client.ledgers.throttle import RateLimit
from bookie.client.ledgers.view import LedgerView
from bookie.errors import BookKeeperError, ClientClosed, IllegalOperation

__all__ = ["Replicas"]

A = TypeVar("A")
R = TypeVar("R")


class Replicas:
    """The replicas of one ledger. With sticky reads all entries are read from the same bookie first, until it fails."""

    def __init__(self, view: LedgerView, context: ClientContext) -> None:
        self._view = view
        self._bookies = context.bookies
        self._store = context.metadata
        self._placement = context.placement
        config = context.config
        self._patience = Patience(
            config.speculative_read_first_s, config.speculative_read_max_s, config.speculative_read_backoff
        )
        self._rate = RateLimit(config.throttle_per_s, burst=config.throttle_per_s)
        metadata = view.metadata
        self._size = metadata.ensemble_size
        self._quorum = metadata.write_quorum
        self._sticky = (
            context.random.randrange(self._size) if config.sticky_reads and self._size == self._quorum else None
        )

    @property
    def stripes(self) -> int:
        """Within a segment, entries at this distance are on the same bookies in the same order; with sticky reads
        all are.
        """
        return 1 if self._sticky is not None else self._size

    def order(self, entry: int, *, whole_ensemble: bool = False) -> list[str]:
        """Return the bookies that hold an entry, best first, or all bookies of its ensemble."""
        ensemble = self._view.segment_at(entry)[0].bookies
        start = entry % self._size if self._sticky is None else self._sticky
        count = self._size if whole_ensemble else self._quorum
        indices: Sequence[int] = [(start + k) % self._size for k in range(count)]
        if count > 1:
            indices = self._placement.read_order(ensemble, indices, self._bookies.pending)
        return [ensemble[index] for index in indices]

    async def ask(
        self,
        entry: int,
        ask: Callable[[str], Awaitable[A]],
        judge: Callable[[str, A], R],
        *,
        heard: set[str] | None = None,
        among: Callable[[str], bool] | None = None,
        turns: int = 1,
    ) -> R:
        """Return the first good answer of a replica of `entry`, or raise the most informative error.

        If all replicas fail, and the metadata name other bookies by now, those are asked. `among` tells which bookies
        can be asked at all; if none can, IllegalOperation is raised. `turns` is the cost of a request for the rate
        limit. `Race` explains the other arguments.
        """
        asking = self._in_turn(ask, turns) if self._rate.limited else ask
        while True:
            order = self.order(entry)
            replicas = order if among is None else [bookie for bookie in order if among(bookie)]
            if not replicas:
                raise IllegalOperation(
                    f"ledger {self._view.ledger}, entry {entry}: none of its bookies supports this request"
                )
            try:
                return await self._race(replicas, asking, judge, heard).run()
            except ClientClosed:
                raise
            except BookKeeperError as error:
                if not await self._moved(entry, set(order), error):
                    raise type(error)(
                        f"ledger {self._view.ledger}, entry {entry}: no good answer from {', '.join(replicas)}: {error}"
                    ) from error

    async def _moved(self, entry: int, replicas: set[str], error: BookKeeperError) -> bool:
        """Return whether other bookies hold the entry by now, because failed or retired bookies were replaced in
        the metadata.
        """
        if entry > self._view.lac and isinstance(error, MISSING):
            return False
        await self._view.look_again(self._store)
        return not replicas.issuperset(self.order(entry))

    def _race(
        self,
        order: list[str],
        ask: Callable[[str], Awaitable[A]],
        judge: Callable[[str, A], R],
        heard: set[str] | None,
    ) -> Race[A, R]:
        return Race(
            order,
            ask,
            judge,
            self._patience,
            heard=heard,
            on_error=None if self._sticky is None else self._unstick,
            on_slow=self._placement.slow,
        )

    def _in_turn(self, ask: Callable[[str], Awaitable[A]], turns: int) -> Callable[[str], Awaitable[A]]:
        async def in_turn(bookie: str) -> A:
            await self._rate.take(turns)
            return await ask(bookie)

        return in_turn

    def _unstick(self, bookie: str, _: BookKeeperError) -> None:
        ensemble = self._view.metadata.segments[-1].bookies
        if self._sticky is not None and ensemble[self._sticky] == bookie:
            self._sticky = (self._sticky + 1) % self._size
