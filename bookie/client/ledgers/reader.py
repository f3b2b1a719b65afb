"""All reads of a handle: it checks the parameters, then uses single reads, batch reads, ranges or LAC reads. Event
loop.

Error texts name the ledger, the entry and the bookies. Any read may raise IncorrectParameter if an argument is out of
its range, and ReadError if an entry above the LAC is requested. Reads raise the handle's LAC and never lower it.
"""

from bookie.client.arguments import IDS_END, integer
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
    """The read side of one handle. `view` may be shared with a write side, which updates its LAC and metadata.

    `start` begins to watch the metadata of a ledger that is not closed; `close` ends that.
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
        self.digest = digest
        self.replicas = replicas = Replicas(self.view, context)
        self.singles = SingleReads(self.view, digest, context.bookies, replicas)
        self._batches = BatchReads(self.view, digest, context.bookies, replicas, self.singles, self._config)
        self._lacs = LacReads(self.view, digest, replicas, context)

    @property
    def batches_enabled(self) -> bool:
        """Whether batch reads may be used for this ledger, if its bookies support them."""
        return self._batches.enabled

    def start(self) -> None:
        """Watch the metadata until the ledger is closed, for ensemble changes, the end of the ledger, or its
        deletion.
        """
        if not self.view.closed:
            self.view.watch(self._store)

    def close(self) -> None:
        """End the watch. Outstanding reads end by themselves."""
        self.view.close()

    # --- entries ------------------------------------------------------------------------------------------------------

    async def read(self, first: int, last: int) -> EntryBatch:
        """Read all entries from `first` to `last` with single reads, or raise the error of the first that cannot be
        read.
        """
        self._check(first, last)
        return await self.singles.range(first, last)

    async def read_unconfirmed(self, first: int, last: int) -> EntryBatch:
        """Read entries like `read`, but also above the LAC. Such entries may not be in the ledger when it is closed."""
        self._check(first, last, confirmed=False)
        return await self.singles.range(first, last)

    async def read_last_entry(self) -> Entry:
        """Read the LAC from the bookies, and return the entry at it. Raises NoSuchEntry if no entry is acknowledged."""
        lac = await self.read_last_add_confirmed()
        if lac < 0:
            raise NoSuchEntry(f"ledger {self.view.ledger}: no entry is acknowledged yet; try again later")
        return (await self.singles.range(lac, lac))[0]

    async def batch_read(self, first: int, max_count: int = 0, max_size: int = 0) -> EntryBatch:
        """Read some entries from `first` on: one or more, none of them above the LAC.

        There are fewer than `max_count` (0: no limit) if the response would exceed `max_size` bytes (0 and below: a
        frame), at an ensemble change, and before an entry that this replica does not have; continue there. Where
        bookies do not support batch reads, single reads give the same result: see `BatchReads`.
        """
        self._check(first, first)
        _integers(max_count=max_count, max_size=max_size)
        if max_count < 0:
            raise IncorrectParameter(f"max_count {max_count} must be at least 0, which is no limit")
        return await self._batches.some(first, self.view.lac, max_count, max_size)

    async def batch_read_unconfirmed(self, first: int, max_count: int = 0, max_size: int = 0) -> EntryBatch:
        """Read entries like `batch_read`, but also above the LAC; see `read_unconfirmed`. Negative limits are
        errors.
        """
        self._check(first, first, confirmed=False)
        _integers(max_count=max_count, max_size=max_size)
        if max_count < 0 or max_size < 0:
            raise IncorrectParameter(f"max_count {max_count} and max_size {max_size} must be at least 0")
        return await self._batches.some(first, None, max_count, max_size)

    def batches(self, first: int, last: int, *, max_count: int = 0, max_size: int = MIB) -> RangeReader:
        """Read all entries from `first` to `last` in batches with at most `max_count` entries and `max_size` bytes."""
        self._check(first, last)
        _integers(max_count=max_count, max_size=max_size)
        if max_count < 0:
            raise IncorrectParameter(f"max_count {max_count} must be at least 0, which is no limit")
        return RangeReader(self._batches.some, first, last, max_count, max_size, self._config)

    def follow(self, first: int = 0, *, max_count: int = 0, max_size: int = MIB) -> Follower:
        """Read entries from `first` on as they are acknowledged, until the ledger is closed; see `Follower`."""
        _integers(first=first, max_count=max_count, max_size=max_size)
        if not 0 <= first < IDS_END or max_count < 0:
            raise IncorrectParameter(
                f"first entry {first} and max_count {max_count} must be at least 0, the former below 2**63"
            )
        self.start()
        return Follower(self, self.view, first, max_count, max_size, self._config)

    # --- the LAC ------------------------------------------------------------------------------------------------------

    async def read_last_add_confirmed(self) -> int:
        """Ask the bookies for the LAC, and return it. It is at least as high as any LAC that a reader was told
        before.
        """
        return await self._lacs.read()

    async def try_read_last_add_confirmed(self) -> int:
        """Return the first LAC above the known one, which is cheap but may be old. Raises LedgerRecoveryError."""
        return await self._lacs.try_read()

    async def read_last_add_confirmed_and_entry(
        self, entry: int, timeout_ms: int, *, parallel: bool = False
    ) -> LastConfirmed:
        """Wait until `entry` is acknowledged, up to `timeout_ms` at each bookie, and return the LAC, with the entry
        if it came.

        `parallel` asks the whole ensemble at once. With V2 bookies do not wait. Raises IncorrectParameter if
        `timeout_ms` is not below the read timeout.
        """
        _integers(entry=entry, timeout_ms=timeout_ms)
        limit_s = self._config.read_timeout_s
        if not 0 <= entry < IDS_END or timeout_ms < 0 or (limit_s and timeout_ms >= limit_s * 1000):
            raise IncorrectParameter(
                f"entry {entry} must be 0 to 2**63 - 1, and timeout_ms {timeout_ms} at least 0 and below {limit_s} s"
            )
        view = self.view
        if view.closed and entry > view.lac:
            return LastConfirmed(view.lac, None)
        if entry <= view.lac:
            return LastConfirmed(view.lac, await self.singles.range(entry, entry))
        return await self._lacs.wait(entry, timeout_ms, parallel=parallel)

    def _check(self, first: int, last: int, *, confirmed: bool = True) -> None:
        _integers(first=first, last=last)
        ledger, lac = self.view.ledger, self.view.lac
        if not 0 <= first <= last < IDS_END:
            raise IncorrectParameter(
                f"ledger {ledger}: entries {first} to {last} are not a range 0 <= first <= last < 2**63"
            )
        if confirmed and last > lac:
            raise ReadError(f"ledger {ledger}, entry {last}: above the LAC {lac}; read the LAC again")


def _integers(**given: int) -> None:
    for name, value in given.items():
        if type(value) is not int:
            integer(name, value)
