"""Everything that a handle reads of its ledger: parameters checked, then singles, batches, ranges, LACs. Event loop.

Errors name ledger, entry and bookies. IncorrectParameter: an argument is out of its range. ReadError: an entry above
the LAC was asked for. Reads through a handle raise its LAC and never lower it.
"""

from bookie.client.entries.digest import Digest
from bookie.client.entries.verified import Entry, EntryBatch
from bookie.client.ledgers.batch_reads import BatchReads
from bookie.client.ledgers.context import ClientContext
from bookie.client.ledgers.follow import Follower
from bookie.client.ledgers.lac_reads import LacReads, LastConfirmed
from bookie.client.ledgers.ranges import RangeReader
from bookie.client.ledgers.replicas import Replicas
from bookie.client.ledgers.singles import SingleReads
from bookie.client.ledgers.view import LedgerView
from bookie.errors import IncorrectParameter, NoSuchEntry, ReadError
from bookie.metadata.driver import Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata

__all__ = ["LedgerReader"]

MIB = 1 << 20


class LedgerReader:
    """The read side of one handle. `view` may be shared with its write side, which raises LAC and metadata there.

    `start` follows the metadata of a ledger that is not closed; `close` ends that.
    """

    def __init__(
        self,
        ledger: int,
        metadata: Versioned[LedgerMetadata],
        digest: Digest,
        context: ClientContext,
    ) -> None:
        self.view = LedgerView(ledger, metadata)
        self._store = context.metadata
        self._config = context.config
        bookies, replicas = context.bookies, Replicas(self.view, context)
        self.singles = SingleReads(self.view, digest, bookies, replicas)
        self._batches = BatchReads(self.view, digest, bookies, replicas, self.singles, self._config)
        self._lacs = LacReads(self.view, digest, replicas, context)

    def start(self) -> None:
        """Follow the metadata until the ledger is closed: ensembles that change, the end, a deletion."""
        if not self.view.closed:
            self.view.watch(self._store)

    def close(self) -> None:
        """Follow it no more. What is under way ends by itself."""
        self.view.close()

    # --- entries ------------------------------------------------------------------------------------------------------

    async def read(self, first: int, last: int) -> EntryBatch:
        """All entries from `first` to `last`, each read by itself and all in memory; or the first one's error."""
        self._check(first, last)
        return await self.singles.range(first, last)

    async def read_unconfirmed(self, first: int, last: int) -> EntryBatch:
        """`read` that goes beyond the LAC: what it returns there may not be in the ledger once that is closed."""
        self._check(first, last, confirmed=False)
        return await self.singles.range(first, last)

    async def read_last_entry(self) -> Entry:
        """The entry at the LAC, which is refreshed first. NoSuchEntry: nothing is acknowledged yet."""
        lac = await self.read_last_add_confirmed()
        if lac < 0:
            raise NoSuchEntry(f"ledger {self.view.ledger}: no entry is acknowledged yet; read its LAC again later")
        return (await self.singles.range(lac, lac))[0]

    async def batch_read(self, first: int, max_count: int = 0, max_size: int = 0) -> EntryBatch:
        """Some entries from `first` on, one at least, to the LAC at most.

        Fewer than `max_count` (0: no such limit) when the answer would exceed `max_size` bytes (0 and below: those of a
        frame), at an ensemble change, and in front of an entry that this replica cannot give: read on from there.
        Single reads serve it, with the same result, where bookies cannot: see `BatchReads`.
        """
        self._check(first, first)
        if max_count < 0:
            raise IncorrectParameter(f"max_count {max_count} must be at least 0, which is no limit")
        return await self._batches.some(first, self.view.lac, max_count, max_size)

    async def batch_read_unconfirmed(self, first: int, max_count: int = 0, max_size: int = 0) -> EntryBatch:
        """`batch_read` that goes beyond the LAC; see `read_unconfirmed`. Negative limits are errors."""
        self._check(first, first, confirmed=False)
        if max_count < 0 or max_size < 0:
            raise IncorrectParameter(f"max_count {max_count} and max_size {max_size} must be at least 0")
        return await self._batches.some(first, None, max_count, max_size)

    def batches(self, first: int, last: int, *, max_count: int = 0, max_size: int = MIB) -> RangeReader:
        """All entries from `first` to `last` in batches of at most `max_count` and `max_size`: see `RangeReader`."""
        self._check(first, last)
        if max_count < 0:
            raise IncorrectParameter(f"max_count {max_count} must be at least 0, which is no limit")
        return RangeReader(self._batches.some, first, last, max_count, max_size, self._config)

    def follow(self, first: int = 0, *, max_count: int = 0, max_size: int = MIB) -> Follower:
        """Entries from `first` on as they are acknowledged, until the ledger is closed: see `Follower`."""
        if first < 0 or max_count < 0:
            raise IncorrectParameter(f"first entry {first} and max_count {max_count} must be at least 0")
        self.start()
        return Follower(self, self.view, first, max_count, max_size, self._config)

    # --- the LAC ------------------------------------------------------------------------------------------------------

    async def read_last_add_confirmed(self) -> int:
        """The LAC; every entry that was acknowledged before the call is at or below it."""
        return await self._lacs.read()

    async def try_read_last_add_confirmed(self) -> int:
        """A LAC, the first better than the known one: cheaper, and may lag behind. LedgerRecoveryError."""
        return await self._lacs.try_read()

    async def read_last_add_confirmed_and_entry(
        self, entry: int, timeout_ms: int, *, parallel: bool = False
    ) -> LastConfirmed:
        """The LAC, with `entry` if it is acknowledged; waits for that at the bookies, at most so long at each of them.

        `parallel` asks all of the ensemble at once. Over V2 nobody waits. `timeout_ms` must be below the time limit of
        reads: IncorrectParameter.
        """
        limit_s = self._config.read_timeout_s
        if entry < 0 or timeout_ms < 0 or (limit_s and timeout_ms >= limit_s * 1000):
            raise IncorrectParameter(
                f"entry {entry} and timeout_ms {timeout_ms} must be at least 0, the latter below {limit_s} s"
            )
        view = self.view
        if view.closed and entry > view.lac:
            return LastConfirmed(view.lac, None)
        if entry <= view.lac:
            return LastConfirmed(view.lac, await self.singles.range(entry, entry))
        return await self._lacs.wait(entry, timeout_ms, parallel=parallel)

    def _check(self, first: int, last: int, *, confirmed: bool = True) -> None:
        ledger, lac = self.view.ledger, self.view.lac
        if first < 0 or first > last:
            raise IncorrectParameter(f"ledger {ledger}: entries {first} to {last} are no range: 0 <= first <= last")
        if confirmed and last > lac:
            raise ReadError(f"ledger {ledger}, entry {last}: above the LAC {lac}; read the LAC anew")
