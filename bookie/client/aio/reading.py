"""The handle of a ledger that is read. Event loop.

Entry ids start at 0. Errors name ledger, entry and bookies. IncorrectParameter: an argument is outside its range;
ReadError: an entry above the LAC was asked for; LedgerClosed: the handle was closed; ClientClosed: the client was.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from bookie.client.aio.scope import Scope
from bookie.client.entries.verified import Entry, EntryBatch
from bookie.client.ledgers.batched import Batched
from bookie.client.ledgers.lac_reads import LastConfirmed
from bookie.client.ledgers.reader import MIB, LedgerReader
from bookie.errors import LedgerClosed
from bookie.metadata.records.ledger_metadata import LedgerMetadata

__all__ = ["Batches", "ReadHandle", "Reading"]


class Batches(Batched):
    """Batches of entries that follow each other: `async for`, or `ready` for all that is there at once."""

    def __init__(self, scope: Scope, source: Batched) -> None:
        self._scope = scope
        self._source = source

    async def ready(self, limit: int = 0) -> list[EntryBatch]:
        """As many batches as are there and one at least, `limit` at most (0: no limit); none: that was all."""
        return await self._scope.run(self._source.ready(limit))

    async def aclose(self) -> None:
        """Read nothing ahead any more. Needed only where it is left before its end; twice is fine."""
        await self._source.aclose()


class Reading:
    """What can be read of a ledger, through either kind of handle."""

    def __init__(self, scope: Scope, reader: LedgerReader) -> None:
        self._scope = scope
        self._reading = reader
        self._closed = False

    @property
    def _reader(self) -> LedgerReader:
        if self._closed:
            raise LedgerClosed(f"ledger {self.id}: this handle was closed; open the ledger again")
        return self._reading

    @property
    def id(self) -> int:
        """The ledger's id."""
        return self._reading.view.ledger

    @property
    def metadata(self) -> LedgerMetadata:
        """The newest that this handle has seen: quorums, state, ensembles."""
        return self._reading.view.metadata

    @property
    def custom_metadata(self) -> Mapping[str, bytes]:
        """What the creator put there."""
        return self.metadata.custom

    @property
    def last_add_confirmed(self) -> int:
        """The LAC as far as this handle knows: every entry up to it is acknowledged for ever; -1: none."""
        return self._reading.view.lac

    @property
    def length(self) -> int:
        """Payload bytes of the ledger up to some entry that was seen; all of them once it is closed."""
        return self._reading.view.length

    @property
    def is_closed(self) -> bool:
        """Whether the ledger, not this handle, is closed: `last_add_confirmed` is its last entry then."""
        return self._reading.view.closed

    async def read(self, first: int, last: int | None = None) -> EntryBatch:
        """Entries `first` to `last` (None: only `first`), all in memory, or the error of the first that cannot be read.

        For more than a few megabytes take `batches`.
        """
        return await self._scope.run(self._reader.read(first, first if last is None else last))

    async def read_unconfirmed(self, first: int, last: int | None = None) -> EntryBatch:
        """`read` that goes beyond the LAC: what it returns there may not be in the ledger once that is closed."""
        return await self._scope.run(self._reader.read_unconfirmed(first, first if last is None else last))

    async def read_last_entry(self) -> Entry:
        """The entry at the LAC, which is refreshed first. NoSuchEntry: nothing is acknowledged yet."""
        return await self._scope.run(self._reader.read_last_entry())

    async def batch_read(self, first: int, max_count: int = 0, max_size: int = 0) -> EntryBatch:
        """Some entries from `first` on, one at least, up to the LAC at most: in one answer of one bookie.

        `max_count` 0: no such limit. `max_size`: bytes of the answer; 0 and below, and more than a frame: a frame. It
        may bring less than asked for: go on behind `batch.last`.
        """
        return await self._scope.run(self._reader.batch_read(first, max_count, max_size))

    async def batch_read_unconfirmed(self, first: int, max_count: int = 0, max_size: int = 0) -> EntryBatch:
        """`batch_read` that goes beyond the LAC; see `read_unconfirmed`."""
        return await self._scope.run(self._reader.batch_read_unconfirmed(first, max_count, max_size))

    def batches(self, first: int = 0, last: int | None = None, *, max_count: int = 0, max_size: int = MIB) -> Batches:
        """All entries from `first` to `last` (None: the LAC) in order, read ahead within `maxReadBytesInFlight`."""
        reader = self._reader
        last = self.last_add_confirmed if last is None else last
        if last < first and last == self.last_add_confirmed and first in (0, last + 1):
            return Batches(self._scope, _Nothing())
        return Batches(self._scope, reader.batches(first, last, max_count=max_count, max_size=max_size))

    def follow(self, first: int = 0, *, max_count: int = 0, max_size: int = MIB) -> Batches:
        """Entries from `first` on as they are acknowledged, until somebody closes the ledger.

        The LAC that bookies know lags one entry behind the writer's until the next add, unless the writer sends
        explicit LACs (`explicitLacInterval`) or closes the ledger.
        """
        return Batches(self._scope, self._reader.follow(first, max_count=max_count, max_size=max_size))

    async def read_last_add_confirmed(self) -> int:
        """The LAC, asked of enough bookies; every entry that readers were told of before is at or below it."""
        return await self._scope.run(self._reader.read_last_add_confirmed())

    async def try_read_last_add_confirmed(self) -> int:
        """A LAC, the first better than the known one: cheaper, and may lag behind."""
        return await self._scope.run(self._reader.try_read_last_add_confirmed())

    async def read_last_add_confirmed_and_entry(
        self, entry: int, timeout_ms: int, *, parallel: bool = False
    ) -> LastConfirmed:
        """(lac, batch of one or None): wait until `entry` is acknowledged, `timeout_ms` at most at each bookie."""
        return await self._scope.run(
            self._reader.read_last_add_confirmed_and_entry(entry, timeout_ms, parallel=parallel)
        )


class ReadHandle(Reading):
    """A ledger that was opened. An async context manager; leaving it closes the handle, not the ledger."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Follow the ledger no more. Twice is fine."""
        self._closed = True
        self._reading.close()


class _Nothing(Batched):
    async def ready(self, limit: int = 0) -> list[EntryBatch]:
        del limit
        return []

    async def aclose(self) -> None:
        """There is nothing."""
