"""Fence a ledger, so that no ack quorum of the last ensemble accepts another add of its writer. Event loop."""

import asyncio
import contextlib
import logging
from collections.abc import Collection

from bookie.client.contracts import Bookies
from bookie.client.entries.digest import Digest
from bookie.client.ledgers.coverage import Coverage
from bookie.client.wire.flags import LAST_ENTRY, Flags
from bookie.errors import (
    BookKeeperError,
    ClientClosed,
    LedgerRecoveryError,
    NoSuchEntry,
    NoSuchLedger,
    RequestTimeout,
    UnauthorizedAccess,
)
from bookie.metadata.records.ledger_metadata import LedgerMetadata

__all__ = ["Fencing"]

log = logging.getLogger(__name__)


class Fencing:
    """Fences one ledger on the last ensemble. Requests to bookies that are late continue until `close`."""

    def __init__(self, bookies: Bookies, ledger: int, metadata: LedgerMetadata, digest: Digest) -> None:
        self._bookies = bookies
        self._ledger = ledger
        self._ensemble = metadata.segments[-1].bookies
        self._digest = digest
        self._coverage = Coverage(metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum)
        self._requests: dict[asyncio.Task[int], int] = {}
        self._fenced: set[str] = set()

    @property
    def fenced(self) -> Collection[str]:
        """The bookies that are fenced so far."""
        return self._fenced

    async def fence(self) -> int:
        """Fence the ledger on enough bookies, and return the highest LAC that one of them knows, -1 for none.

        It does not wait for further bookies. Raises UnauthorizedAccess if any bookie answers so, and
        LedgerRecoveryError or RequestTimeout if too few bookies can be fenced.
        """
        self._requests = {asyncio.ensure_future(self._ask(bookie)): k for k, bookie in enumerate(self._ensemble)}
        lac = -1
        failure: BookKeeperError | None = None
        waiting = set(self._requests)
        while waiting:
            ended, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            covered = False
            for task in sorted(ended, key=self._requests.__getitem__):
                index = self._requests[task]
                try:
                    lac = max(lac, task.result())
                    covered = self._coverage.take(index)
                except (ClientClosed, UnauthorizedAccess):
                    raise
                except BookKeeperError as error:
                    failure = error
                    log.info("ledger %d: bookie %s is not fenced: %s", self._ledger, self._ensemble[index], error)
            if covered:
                return lac
        kind = RequestTimeout if isinstance(failure, RequestTimeout) else LedgerRecoveryError
        raise kind(
            f"ledger {self._ledger}: only {len(self._fenced)} of {', '.join(self._ensemble)} could be fenced; the last"
            f" error: {failure}"
        ) from failure

    async def close(self) -> None:
        """Cancel the requests that are outstanding."""
        for task in self._requests:
            task.cancel()
        await asyncio.gather(*self._requests, return_exceptions=True)

    async def _ask(self, bookie: str) -> int:
        lac = -1
        with contextlib.suppress(NoSuchEntry, NoSuchLedger):
            answer = await self._bookies.read(
                bookie, self._ledger, LAST_ENTRY, flags=Flags.FENCE, master_key=self._digest.master_key
            )
            if answer.stored is not None:
                lac = self._digest.open(answer.stored, self._ledger).lac
        self._fenced.add(bookie)
        return lac
