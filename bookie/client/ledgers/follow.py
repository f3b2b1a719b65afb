"""Read a ledger to its end while it is written. Event loop.

Entries that are acknowledged are read in batches, and the next one is awaited with long polls. The metadata tell when
the ensemble changes and where the ledger ends.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from bookie.client.config import ClientConfig
from bookie.client.entries.verified import EntryBatch
from bookie.client.ledgers.batched import Batched
from bookie.client.ledgers.lac_reads import LastConfirmed
from bookie.client.ledgers.race import MISSING
from bookie.client.ledgers.ranges import RangeReader
from bookie.client.ledgers.view import LedgerView
from bookie.errors import BookKeeperError, ClientClosed, NoSuchLedgerMetadata, UnauthorizedAccess

__all__ = ["Follower"]

T = TypeVar("T")
POLL_MS_MAX = 60_000
POLL_SHARE = 0.5
"""The share of the read timeout that a long poll may take; the rest is for the network."""
PAUSE_FIRST_S, PAUSE_MAX_S = 0.02, 1.0
"""The pause between two reads of the LAC where bookies do not wait: with V2, or if a bookie has nothing of the
ledger yet.
"""
FAILURES_S = 30.0
"""How long all replicas may fail before the reader sees the error. The writer, or auto-recovery, may replace them
meanwhile.
"""


class Reads(Protocol):
    """The methods of `LedgerReader` that a follower needs."""

    def batches(self, first: int, last: int, *, max_count: int, max_size: int) -> RangeReader: ...
    def read_last_add_confirmed_and_entry(self, entry: int, timeout_ms: int) -> Coroutine[Any, Any, LastConfirmed]: ...


class Follower(Batched):
    """The batches of a ledger from an entry on; the iteration ends where the ledger is closed.

    It raises NoSuchLedgerMetadata if the ledger is deleted, and an error of the bookies after it has lasted for 30
    seconds. Call `aclose` to leave it early.
    """

    def __init__(
        self, reads: Reads, view: LedgerView, first: int, max_count: int, max_size: int, config: ClientConfig
    ) -> None:
        self._reads = reads
        self._view = view
        self._next = first
        self._max_count = max_count
        self._max_size = max_size
        self._poll_ms = POLL_MS_MAX
        if config.read_timeout_s:
            self._poll_ms = min(self._poll_ms, int(config.read_timeout_s * 1000 * POLL_SHARE))
        self._range: RangeReader | None = None
        self._failing_since: float | None = None
        """Since when reads of acknowledged entries have failed, not counting the time between two calls."""
        self._left_at = 0.0
        """When the last call of `ready` ended."""
        self._over = False
        self._turn = asyncio.Lock()
        """A call that is cancelled may still be ending while the next one begins."""

    async def ready(self, limit: int = 0) -> list[EntryBatch]:
        """Return the next batches, as many as have arrived and at least one; at most `limit`, if that is not 0.

        An empty list means that the ledger is closed and was read to its end.
        """
        async with self._turn:
            loop = asyncio.get_running_loop()
            if self._failing_since is not None:
                self._failing_since += loop.time() - self._left_at
            try:
                return await self._ready(limit)
            finally:
                self._left_at = loop.time()

    async def _ready(self, limit: int) -> list[EntryBatch]:
        while not self._over:
            if self._range is None and self._next <= self._view.lac:
                self._range = self._reads.batches(
                    self._next, self._view.lac, max_count=self._max_count, max_size=self._max_size
                )
            if self._range is not None:
                got = await self._ranged(self._range, limit)
                if got:
                    return got
                if self._failing_since is not None:  # with the metadata, which may name other bookies meanwhile
                    await self._unless_changed(asyncio.sleep(PAUSE_MAX_S))
            elif self._view.closed:
                break
            elif (batch := await self._wait()) is not None:
                self._next = batch.last + 1
                return [batch]
        return []

    async def _ranged(self, batches: RangeReader, limit: int) -> list[EntryBatch]:
        """Return the next batches of a range, or none at its end, and after an error that has not lasted too long."""
        loop = asyncio.get_running_loop()
        try:
            got = await batches.ready(limit)
        except BookKeeperError as error:
            self._range = None
            if isinstance(error, (ClientClosed, NoSuchLedgerMetadata, UnauthorizedAccess)):
                raise
            if self._failing_since is None:
                self._failing_since = loop.time()
            elif loop.time() - self._failing_since > FAILURES_S:
                raise
            return []
        self._failing_since = None
        if got:
            self._next = got[-1].last + 1
        else:
            self._range = None
        return got

    async def aclose(self) -> None:
        """Stop reading. Further calls do nothing."""
        self._over = True
        if self._range is not None:
            await self._range.aclose()

    async def _wait(self) -> EntryBatch | None:
        """Wait until the LAC reaches the next entry, which is returned if it came along, or until the ledger is
        closed.
        """
        loop = asyncio.get_running_loop()
        pause_s = PAUSE_FIRST_S
        failing_since: float | None = None
        while self._next > self._view.lac and not self._view.closed:
            error = None
            requested_at = loop.time()
            try:
                answer = await self._unless_changed(
                    self._reads.read_last_add_confirmed_and_entry(self._next, self._poll_ms)
                )
            except (ClientClosed, UnauthorizedAccess):
                raise
            except BookKeeperError as wrong:
                error = wrong
            else:
                if answer is None:
                    continue
                if answer.entry is not None:
                    return answer.entry
            now = loop.time()
            if error is None or isinstance(error, MISSING):
                failing_since = None
            else:
                failing_since = failing_since if failing_since is not None else requested_at
                if now - failing_since > FAILURES_S:
                    raise error
            if now - requested_at < pause_s:
                await self._unless_changed(asyncio.sleep(pause_s))
                pause_s = min(PAUSE_MAX_S, 2 * pause_s)
        return None

    async def _unless_changed(self, action: Coroutine[Any, Any, T]) -> T | None:
        """Run an action, and return its result, or None if the LAC or the metadata changed before.

        Raises NoSuchLedgerMetadata.
        """
        acting, changing = asyncio.ensure_future(action), asyncio.ensure_future(self._view.change())
        try:
            await asyncio.wait((acting, changing), return_when=asyncio.FIRST_COMPLETED)
            if acting.done():
                return acting.result()
            return changing.result()
        finally:
            for task in (acting, changing):
                task.cancel()
            await asyncio.gather(acting, changing, return_exceptions=True)
