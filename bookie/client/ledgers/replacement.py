"""Bookies that fail while a ledger is written are replaced: one change of the ensemble at a time. Event loop.

While a change is under way nothing is acknowledged: its new segment starts behind the LAC of its beginning, and no
entry from there on may have been confirmed on the bookies that are replaced. It is adopted once the store has it.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from bookie._fast.client.write_window import WriteWindow
from bookie.client.config import ClientConfig
from bookie.client.contracts import Metadata, Placement
from bookie.client.features import Features
from bookie.client.ledgers.metadata_loop import Known, change_metadata
from bookie.client.ledgers.segments import with_bookies_replaced
from bookie.errors import BookKeeperError, LedgerClosed, LedgerFenced, WriteError
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState

__all__ = ["EnsembleChanges", "InMemory", "InStore", "Replacer", "still_open"]

RETRY_S = 1.0
ASKED_AGAIN_S = 0.1


class EnsembleChanges(Protocol):
    """Where a new ensemble becomes the ledger's."""

    async def replace(self, known: Known, failed: Mapping[int, str], first_entry: Callable[[], int]) -> None:
        """Have other bookies from `first_entry` on in place of those of `failed` that still stand in the last ensemble.

        Raises what makes the ledger unwritable.
        """
        ...


class InStore:
    """The ordinary way: in the metadata store, by compare and set."""

    def __init__(self, store: Metadata, placement: Placement) -> None:
        self._store = store
        self._placement = placement

    async def replace(self, known: Known, failed: Mapping[int, str], first_entry: Callable[[], int]) -> None:
        """See `EnsembleChanges`. LedgerClosed, LedgerFenced: somebody else closed it, or is about to."""

        def change(metadata: LedgerMetadata) -> LedgerMetadata | None:
            ensemble = metadata.segments[-1].bookies
            if metadata.state is not LedgerState.OPEN or all(ensemble[k] != one for k, one in failed.items()):
                return None
            return with_bookies_replaced(metadata, failed, first_entry(), self._placement)

        found = await change_metadata(self._store, known, change)
        _require_open(found)


async def still_open(store: Metadata, known: Known, ended: Callable[[], bool]) -> None:
    """Return once the store says that the ledger is still open, or `ended`. LedgerClosed, LedgerFenced.

    Behind a lost connection may be another bookie at the same address, which knows of no fence: it takes adds of a
    ledger that was recovered meanwhile (bookkeeper#4812). NoSuchLedgerMetadata: it was deleted.
    """
    while not ended():
        try:
            stored = await store.read(known.ledger)
        except BookKeeperError as error:
            if not error.retriable:
                raise
            await asyncio.sleep(RETRY_S)
            continue
        if stored.value.state is not LedgerState.OPEN:
            known.learn(stored)
            _require_open(stored.value)
        return


def _require_open(metadata: LedgerMetadata) -> None:
    if metadata.state is LedgerState.CLOSED:
        raise LedgerClosed("somebody else has closed it; open it to read, or create another ledger")
    if metadata.state is LedgerState.IN_RECOVERY:
        raise LedgerFenced("somebody else recovers it; open it to read, or create another ledger")


class InMemory:
    """While a ledger is recovered: the store hears of it when the ledger is closed."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self.segments: dict[int, tuple[str, ...]] = {}
        """First entry and bookies of each new segment, ascending: for the close to put in place."""

    async def replace(self, known: Known, failed: Mapping[int, str], first_entry: Callable[[], int]) -> None:
        """See `EnsembleChanges`. The version stays."""
        known.metadata = with_bookies_replaced(known.metadata, failed, first_entry(), self._placement)
        last = known.metadata.segments[-1]
        self.segments[last.first_entry] = last.bookies


class Replacer:
    """Which bookies failed and wait to be replaced, and the change that is under way."""

    def __init__(self, changes: EnsembleChanges, window: WriteWindow, config: ClientConfig, features: Features) -> None:
        self._changes = changes
        self._window = window
        self._changes_max = config.ensemble_changes_max
        self._features = features
        self._unchanged = config.ensemble_change_feature
        self._count = 0
        self.running = False
        self.waiting: dict[int, str] = {}
        """Replaced at the next change: they failed during one, or after what they failed was complete."""

    async def run(self, known: Known) -> None:
        """Replace all that `waiting` names, also what joins it meanwhile. Raises what makes the ledger unwritable.

        The window holds from before the call until the caller has adopted the ensemble.
        """
        try:
            while self.waiting and self._window.error is None:
                failed, self.waiting = self.waiting, {}
                if self._features.on(self._unchanged) and not self._window.deferred:
                    await asyncio.sleep(ASKED_AGAIN_S)
                    continue
                self._count += 1
                if self._count > self._changes_max:
                    raise WriteError(f"bookies failed {self._count} times; maxNumEnsembleChanges={self._changes_max}")
                if self._window.deferred:
                    raise WriteError("a bookie failed, and what it has not synced yet cannot be moved to another one")
                await self._changes.replace(known, failed, lambda: self._window.lac + 1)
        finally:
            self.running = False
