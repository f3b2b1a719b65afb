"""Replace bookies that fail while a ledger is written, with one ensemble change at a time. Event loop.

During a change nothing is acknowledged: the new segment starts after the last entry that was acknowledged before, and
no entry from there on may have been confirmed on the bookies that are replaced. The new ensemble is used once it is in
the metadata store. If all that is left are bookies that failed a moment ago, and that are still registered, it is used
a little later: their connections may be refused at once, and changes must not follow each other without a pause.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from bookie._fast.client.write_window import WriteWindow
from bookie.client.config import ClientConfig
from bookie.client.contracts import Metadata, Placement
from bookie.client.features import Features
from bookie.client.ledgers.metadata_loop import Known, change_metadata
from bookie.client.ledgers.segments import with_bookies_replaced
from bookie.client.ledgers.suspects import Suspects
from bookie.errors import BookKeeperError, LedgerClosed, LedgerFenced, WriteError
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState

__all__ = ["EnsembleChanges", "InMemory", "InStore", "Replacer", "still_open"]

Avoided = Sequence[frozenset[str]]
RETRY_S = 1.0
ASKED_AGAIN_S = 0.1
SECOND_CHANCE_S = 0.1
"""How long a change waits that has chosen bookies which failed a moment ago, in seconds; at most as long as an add."""


class EnsembleChanges(Protocol):
    """Where a ledger's new ensemble is recorded."""

    async def replace(
        self, known: Known, failed: Mapping[int, str], first_entry: Callable[[], int], avoided: Avoided
    ) -> None:
        """Replace those bookies of `failed` that are still in the last ensemble by others, from `first_entry` on.

        The others are preferably in none of `avoided`; see `with_bookies_replaced`.

        Raises an error if the ledger can no longer be written.
        """
        ...


class InStore:
    """Records new ensembles in the metadata store by compare-and-set, for ordinary writers."""

    def __init__(self, store: Metadata, placement: Placement) -> None:
        self._store = store
        self._placement = placement

    async def replace(
        self, known: Known, failed: Mapping[int, str], first_entry: Callable[[], int], avoided: Avoided
    ) -> None:
        """Replace bookies; see `EnsembleChanges`. Raises LedgerClosed or LedgerFenced if another client closed or
        recovers it.
        """

        def change(metadata: LedgerMetadata) -> LedgerMetadata | None:
            ensemble = metadata.segments[-1].bookies
            if metadata.state is not LedgerState.OPEN or all(ensemble[k] != one for k, one in failed.items()):
                return None
            return with_bookies_replaced(metadata, failed, first_entry(), self._placement, avoided)

        found = await change_metadata(self._store, known, change)
        _require_open(found)


async def still_open(store: Metadata, known: Known, ended: Callable[[], bool]) -> None:
    """Return once the store says that the ledger is still open, or once `ended` returns True.

    After a connection was lost there may be another bookie at the same address that knows of no fence, and accepts
    adds to a ledger that was recovered in the meantime (bookkeeper#4812). Raises LedgerClosed, LedgerFenced, or
    NoSuchLedgerMetadata if the ledger was deleted, also if another one has its id by now.
    """
    while not ended():
        try:
            stored = await store.read(known.ledger, latest=True)
        except BookKeeperError as error:
            if not error.retriable:
                raise
            await asyncio.sleep(RETRY_S)
            continue
        known.require_same(stored)
        if stored.value.state is not LedgerState.OPEN:
            known.learn(stored)
            _require_open(stored.value)
        return


def _require_open(metadata: LedgerMetadata) -> None:
    if metadata.state is LedgerState.CLOSED:
        raise LedgerClosed("another client closed it; open it to read, or create another ledger")
    if metadata.state is LedgerState.IN_RECOVERY:
        raise LedgerFenced("another client is recovering it; open it to read, or create another ledger")


class InMemory:
    """Records new ensembles in memory during recovery; the store learns them when the ledger is closed."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self.segments: dict[int, tuple[str, ...]] = {}
        """The bookies of each new segment by its first entry, ascending; the close records them in the store."""

    async def replace(
        self, known: Known, failed: Mapping[int, str], first_entry: Callable[[], int], avoided: Avoided
    ) -> None:
        """Replace bookies; see `EnsembleChanges`. The version of the metadata stays the same."""
        known.metadata = with_bookies_replaced(known.metadata, failed, first_entry(), self._placement, avoided)
        last = known.metadata.segments[-1]
        self.segments[last.first_entry] = last.bookies


class Replacer:
    """The bookies that failed and are to be replaced, and the ensemble change that is running."""

    def __init__(
        self,
        changes: EnsembleChanges,
        placement: Placement,
        window: WriteWindow,
        config: ClientConfig,
        features: Features,
        *,
        movable: bool = True,
    ) -> None:
        """`movable` is False if entries are acknowledged before they are synced: then no bookie can be replaced."""
        self._changes = changes
        self._window = window
        self._movable = movable
        self._changes_max = config.ensemble_changes_max
        self._pause_s = min(SECOND_CHANCE_S, config.add_timeout_s) if config.add_timeout_s > 0 else SECOND_CHANCE_S
        self._features = features
        self._unchanged = config.ensemble_change_feature
        self._suspects = Suspects(placement, config.bookie_failure_expiry_s)
        self._count = 0
        self.running = False
        self.waiting: dict[int, str] = {}
        """Bookies for the next change: they failed during one, or failed adds that were already complete."""

    async def run(self, known: Known) -> None:
        """Replace all bookies in `waiting`, including those that are added while it runs.

        Raises an error if the ledger can no longer be written. The window must hold acknowledgements back from before
        the call until the caller uses the new ensemble.
        """
        try:
            while self.waiting and self._window.error is None:
                failed, self.waiting = self.waiting, {}
                if self._features.on(self._unchanged) and self._movable:
                    await asyncio.sleep(ASKED_AGAIN_S)
                    continue
                self._count += 1
                if self._count > self._changes_max:
                    raise WriteError(
                        f"bookies failed {self._count} times, with maxNumEnsembleChanges={self._changes_max}"
                    )
                if not self._movable:
                    raise WriteError(
                        "a bookie failed, and entries that it has not synced cannot be moved to another one"
                    )
                now = asyncio.get_running_loop().time()
                self._suspects.failed(failed.values(), now)
                former = known.metadata.segments[-1].bookies
                await self._changes.replace(known, failed, lambda: self._window.head, self._suspects.avoided(now))
                if self._suspects.chosen(set(known.metadata.segments[-1].bookies).difference(former)):
                    await asyncio.sleep(self._pause_s)
        finally:
            self.running = False
