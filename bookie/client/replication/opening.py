"""Open ledgers for auto-recovery: `contracts.Ledgers` with the client's own reads and recovery. Event loop."""

from bookie.client.ledgers.context import ClientContext
from bookie.client.ledgers.opening import Credentials, digest_of, open_ledger
from bookie.client.ledgers.reader import LedgerReader
from bookie.metadata.driver import Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata

__all__ = ["OpenedLedgers"]

ADMINISTRATOR = Credentials(password=None)


class OpenedLedgers:
    """Opens ledgers with what all ledgers of one client share."""

    def __init__(self, context: ClientContext) -> None:
        self._context = context

    async def last_confirmed(self, ledger: int, metadata: LedgerMetadata) -> int:
        """Read the LAC from the bookies. Raises ReadError."""
        context = self._context
        reader = LedgerReader(ledger, Versioned(metadata, 0, 0), digest_of(metadata, context.config), context)
        return await reader.read_last_add_confirmed()

    async def recover(self, ledger: int) -> None:
        """Fence a ledger and close it. Raises LedgerRecoveryError or NoSuchLedgerMetadata."""
        await open_ledger(self._context, ledger, ADMINISTRATOR, recovery=True)
