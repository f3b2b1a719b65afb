"""In which order replicas are read: healthy bookies first, late and failing ones later for a while. One event loop."""

from collections.abc import Callable, Collection, Sequence
from random import Random

from bookie.client.config import ClientConfig

__all__ = ["ReadOrder"]

HEALTHY, FAILED, REMOTE, REMOTE_FAILED, READ_ONLY, SLOW, UNAVAILABLE = range(7)
SHUFFLED = (HEALTHY, REMOTE, READ_ONLY, UNAVAILABLE)
# The number of replicas in the client's own region before one of another region is read.
LOCAL_FIRST = 2


class ReadOrder:
    """The late and the failing bookies, each forgotten after `bookieFailureHistoryExpirationMSec`."""

    def __init__(self, config: ClientConfig, random: Random, clock: Callable[[], float]) -> None:
        """`clock` returns the time of the event loop, in seconds."""
        self._config = config
        self._random = random
        self._clock = clock
        self._slow: dict[str, float] = {}
        self._failed: dict[str, tuple[float, int]] = {}

    def slow(self, bookie: str) -> None:
        """Note a late bookie, unless the number of pending requests decides (`readReorderThresholdPendingRequests`)."""
        if self._config.reorder_pending_threshold <= 0:
            self._slow[bookie] = self._clock() + self._config.bookie_failure_expiry_s

    def failed(self, bookie: str, entry: int) -> None:
        """Note a bookie that did not have this entry when a long poll ended."""
        if self._config.bookie_failure_tracking:
            self._failed[bookie] = (self._clock() + self._config.bookie_failure_expiry_s, entry)

    def order(
        self,
        ensemble: Sequence[str],
        write_set: Sequence[int],
        pending: Callable[[str], int],
        *,
        writable: Collection[str],
        read_only: Collection[str],
        remote: Callable[[str], bool] | None = None,
    ) -> Sequence[int]:
        """Return the write set, best replica first. `remote` returns whether a bookie is in another region, if
        regions count.
        """
        config = self._config
        if not config.reorder_reads:
            return write_set
        self._forget()
        if config.reorder_pending_threshold > 0:
            write_set = self._least_pending_first(ensemble, write_set, pending)
        slow = self._slow
        if remote is None and not config.random_read_reordering:
            for index in write_set:
                bookie = ensemble[index]
                if bookie in slow or not (bookie in writable or bookie in read_only):
                    break
            else:
                return write_set
        keys = []
        for place, index in enumerate(write_set):
            kind, rank = self._class(ensemble[index], pending, writable, read_only)
            if remote is not None and kind in (HEALTHY, FAILED) and remote(ensemble[index]):
                kind += REMOTE - HEALTHY
            keys.append((kind, rank, place, index))
        keys.sort()
        if config.random_read_reordering:
            keys = self._shuffled(keys)
        kinds, order = [key[0] for key in keys], [key[3] for key in keys]
        if remote is not None:
            self._another_region_early(kinds, order)
        return order

    def _class(
        self, bookie: str, pending: Callable[[str], int], writable: Collection[str], read_only: Collection[str]
    ) -> tuple[int, int]:
        """Return the class of a bookie and its rank there: the entry that it failed, or its number of pending
        requests.
        """
        if bookie in writable and bookie in self._failed:
            return FAILED, self._failed[bookie][1]
        if bookie not in writable and bookie not in read_only:
            return UNAVAILABLE, 0
        if bookie in self._slow:
            return SLOW, pending(bookie)
        return (HEALTHY if bookie in writable else READ_ONLY), 0

    def _forget(self) -> None:
        if self._slow or self._failed:
            now = self._clock()
            self._slow = {bookie: until for bookie, until in self._slow.items() if until > now}
            self._failed = {bookie: known for bookie, known in self._failed.items() if known[0] > now}

    def _least_pending_first(
        self, ensemble: Sequence[str], write_set: Sequence[int], pending: Callable[[str], int]
    ) -> Sequence[int]:
        waiting = [pending(ensemble[index]) for index in write_set]
        best = min(range(len(waiting)), key=waiting.__getitem__, default=0)
        if best and waiting[0] >= waiting[best] + self._config.reorder_pending_threshold:
            return [write_set[best], *write_set[:best], *write_set[best + 1 :]]
        return write_set

    def _shuffled(self, keys: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
        out = []
        for kind in range(UNAVAILABLE + 1):
            group = [key for key in keys if key[0] == kind]
            if kind in SHUFFLED:
                self._random.shuffle(group)
            out += group
        return out

    @staticmethod
    def _another_region_early(kinds: list[int], order: list[int]) -> None:
        """Move the first remote replica behind the second local one at the latest, in case the local region is down."""
        first = next((place for place, kind in enumerate(kinds) if kind in (REMOTE, REMOTE_FAILED)), None)
        if first is None:
            return
        local = 0
        while local < min(LOCAL_FIRST, len(kinds)) and kinds[local] in (HEALTHY, FAILED):
            local += 1
        order.insert(local, order.pop(first))
