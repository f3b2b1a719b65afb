"""The explicit LAC: send the LAC to bookies when no add has carried it. Event loop."""

import asyncio

from bookie._fast.client.write_window import WriteWindow
from bookie.client.contracts import Bookies
from bookie.client.entries.digest import Digest
from bookie.client.ledgers.metadata_loop import Known
from bookie.errors import BookKeeperError
from bookie.metadata.records.ledger_metadata import LedgerMetadata

__all__ = ["ExplicitLac"]


class ExplicitLac:
    """Tracks the LAC that bookies know, from explicit LACs as well as from the adds that carry it."""

    def __init__(self, bookies: Bookies, window: WriteWindow, digest: Digest) -> None:
        self._bookies = bookies
        self._window = window
        self._digest = digest
        self._written = window.lac

    async def tell_every(self, interval_s: float, known: Known) -> None:
        """Call `tell` at this interval until no more entries can be added."""
        while self._window.error is None:
            await asyncio.sleep(interval_s)
            await self.tell(known.metadata)

    async def tell(self, metadata: LedgerMetadata) -> None:
        """Write the LAC to the write set of its entry if no add has carried it.

        Errors of bookies are not raised; the next call writes it again if fewer than the ack quorum have taken it.
        """
        lac = self._window.lac
        carried = lac if self._window.deferred else lac - 1
        if carried > self._written:
            self._written = carried
        elif lac > self._written:
            ledger = self._window.ledger
            packet = self._digest.seal_lac(ledger, lac)
            writes = [
                self._bookies.write_lac(bookie, ledger, lac, packet, self._digest.master_key)
                for bookie in metadata.write_set(lac)
            ]
            outcomes = await asyncio.gather(*writes, return_exceptions=True)
            for outcome in outcomes:
                if isinstance(outcome, BaseException) and not isinstance(outcome, BookKeeperError):
                    raise outcome
            if outcomes.count(None) >= metadata.ack_quorum:
                self._written = lac
