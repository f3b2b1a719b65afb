"""The handle for reading a ledger. All methods run on the event loop.

Entry ids start at 0. Error texts name the ledger, the entry and the bookies. Every read may raise these errors
besides those that it documents: IncorrectParameter if an argument is out of its range, ReadError if an entry above
the LAC is requested, LedgerClosed if the handle was closed, and ClientClosed if the client was closed.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from types import TracebackType
from typing import Self

from bookie.client.aio.scope import Scope
from bookie.client.arguments import integer
from bookie.client.entries.verified import Entry, EntryBatch
from bookie.client.event_loop.limited import limited
from bookie.client.ledgers.batched import Batched
from bookie.client.ledgers.lac_reads import LastConfirmed
from bookie.client.ledgers.reader import MIB, LedgerReader
from bookie.errors import LedgerClosed
from bookie.metadata.records.ledger_metadata import LedgerMetadata

__all__ = ["Batches", "Entries", "ReadHandle", "Reading"]


class Batches(Batched):
    """Consecutive batches of entries. Use `async for`, or `ready` to get all batches that have arrived at once."""

    def __init__(self, scope: Scope, source: Batched) -> None:
        self._scope = scope
        self._source = source

    async def ready(self, limit: int = 0) -> list[EntryBatch]:
        """Wait until at least one batch has arrived, and return all that have.

        Args:
            limit: The highest number of batches to return; 0 means no limit.

        Returns:
            The batches in order; an empty list means that there are no more.
        """
        return await self._scope.run(self._source.ready(limit))

    async def next(self, timeout: float | None = None) -> EntryBatch | None:  # noqa: ASYNC109 - as in the other client
        """Wait for the next batch. A call that takes too long, or is cancelled, leaves it to the next call.

        Args:
            timeout: Seconds to wait at most; None means no limit.

        Returns:
            The next batch, or None if there are no more.

        Raises:
            RequestTimeout: No batch has arrived within `timeout`; call it again.
        """
        got = await limited(self.ready(1), timeout)
        return got[0] if got else None

    async def aclose(self) -> None:
        """Stop reading ahead. It is needed only if the iteration is left before its end. Further calls do nothing."""
        await self._source.aclose()


class Reading:
    """The methods for reading a ledger, which read handles and write handles share."""

    def __init__(self, scope: Scope, reader: LedgerReader) -> None:
        self._scope = scope
        self._reading = reader
        self._closed = False

    @property
    def _reader(self) -> LedgerReader:
        self.check_open()
        return self._reading

    @property
    def reading(self) -> LedgerReader:
        """The reads of this handle, for those that are done on other threads."""
        return self._reading

    def check_open(self) -> None:
        """Check that the handle was not closed. Raises LedgerClosed."""
        if self._closed:
            raise LedgerClosed(f"ledger {self.id}: this handle was closed; open the ledger again")

    @property
    def id(self) -> int:
        """The ledger's id."""
        return self._reading.view.ledger

    @property
    def metadata(self) -> LedgerMetadata:
        """The newest metadata that this handle has seen: quorum sizes, state and ensembles."""
        return self._reading.view.metadata

    @property
    def custom_metadata(self) -> Mapping[str, bytes]:
        """The custom metadata that the ledger was created with."""
        return self.metadata.custom

    @property
    def last_add_confirmed(self) -> int:
        """The highest LAC that this handle has seen, or -1. Every entry up to it is acknowledged and stays in the
        ledger.
        """
        return self._reading.view.lac

    @property
    def length(self) -> int:
        """Bytes of payload in the ledger: the total if it is closed, otherwise those up to the last entry that was
        seen.
        """
        return self._reading.view.length

    @property
    def is_closed(self) -> bool:
        """Whether the ledger (not this handle) is closed; its last entry is then `last_add_confirmed`."""
        return self._reading.view.closed

    async def read(self, first: int, last: int | None = None) -> EntryBatch:
        """Read a range of entries into memory. Use `batches` for more than a few megabytes.

        Args:
            first: The id of the first entry.
            last: The id of the last entry, inclusive and at most the LAC; None reads only `first`.

        Returns:
            The entries, in order and complete.

        Raises:
            ReadError: `last` is above the LAC, or no replica of an entry can be read.
            BookKeeperError: The error of the first entry that cannot be read, such as NoSuchEntry or DigestMismatch.
        """
        return await self._scope.run(self._reader.read(first, first if last is None else last))

    async def read_unconfirmed(self, first: int, last: int | None = None) -> EntryBatch:
        """Read a range of entries like `read`, but also above the LAC.

        An entry above the LAC may not be in the ledger any more when the ledger is closed.

        Args:
            first: The id of the first entry.
            last: The id of the last entry, inclusive, which may be above the LAC; None reads only `first`.

        Returns:
            The entries, in order and complete.

        Raises:
            ReadError: No replica of an entry can be read.
            BookKeeperError: The error of the first entry that cannot be read, such as NoSuchEntry or DigestMismatch.
        """
        return await self._scope.run(self._reader.read_unconfirmed(first, first if last is None else last))

    async def read_last_entry(self) -> Entry:
        """Ask the bookies for the LAC, and return the entry at it.

        Raises:
            NoSuchEntry: No entry is acknowledged yet.
        """
        return await self._scope.run(self._reader.read_last_entry())

    async def batch_read(self, first: int, max_count: int = 0, max_size: int = 0) -> EntryBatch:
        """Read some entries with one response of one bookie: one or more, none of them above the LAC.

        The result may be shorter than both limits allow, for instance at an ensemble change; continue with entry
        `batch.last + 1`. Where bookies do not support batch reads, the result is read entry by entry.

        Args:
            first: The id of the first entry.
            max_count: The highest number of entries; 0 means no limit.
            max_size: The highest size of the response in bytes. 0 or less, and more than a frame, mean one frame
                (`nettyMaxFrameSizeBytes`). The first entry is always returned.

        Returns:
            The entries, in order.

        Raises:
            ReadError: `first` is above the LAC, or no replica of it can be read.
            BookKeeperError: The error of the first entry, such as NoSuchEntry or DigestMismatch.
        """
        return await self._scope.run(self._reader.batch_read(first, max_count, max_size))

    async def batch_read_unconfirmed(self, first: int, max_count: int = 0, max_size: int = 0) -> EntryBatch:
        """Read some entries like `batch_read`, but also above the LAC; see `read_unconfirmed`.

        Args:
            first: The id of the first entry, which may be above the LAC.
            max_count: The highest number of entries; 0 means no limit.
            max_size: The highest size of the response in bytes; 0, and more than a frame, mean one frame.

        Returns:
            The entries, in order.

        Raises:
            IncorrectParameter: `max_size` is negative.
            ReadError: No replica of the first entry can be read.
            BookKeeperError: The error of the first entry, such as NoSuchEntry or DigestMismatch.
        """
        return await self._scope.run(self._reader.batch_read_unconfirmed(first, max_count, max_size))

    def batches(self, first: int = 0, last: int | None = None, *, max_count: int = 0, max_size: int = MIB) -> Batches:
        """Read a range of entries in batches, reading ahead up to `maxReadBytesInFlight` bytes.

        Args:
            first: The id of the first entry.
            last: The id of the last entry, inclusive; None means the LAC that this handle knows.
            max_count: The highest number of entries in a batch; 0 means no limit.
            max_size: The highest size of a batch in bytes; 0 or less means one frame.

        Returns:
            An iterator over the batches, which are in order and complete.
        """
        reader = self._reader
        last = self.last_add_confirmed if last is None else last
        if (
            integer("last", last) < integer("first", first)
            and last == self.last_add_confirmed
            and first in (0, last + 1)
        ):
            return Batches(self._scope, _Nothing())
        return Batches(self._scope, reader.batches(first, last, max_count=max_count, max_size=max_size))

    def batches_begun(self, first: int, last: int, max_count: int, max_size: int) -> Batches:
        """Return a part of `batches` whose arguments were checked, also if the handle was closed in the meantime."""
        return Batches(self._scope, self._reading.batches(first, last, max_count=max_count, max_size=max_size))

    def follow(self, first: int = 0, *, max_count: int = 0, max_size: int = MIB) -> Batches:
        """Read entries in batches as they are acknowledged, until the ledger is closed.

        Bookies learn the LAC with the next add. The last entry of a ledger therefore arrives only when another entry
        is added, when the writer sends an explicit LAC (`explicitLacInterval`), or when the ledger is closed.

        Args:
            first: The id of the first entry.
            max_count: The highest number of entries in a batch; 0 means no limit.
            max_size: The highest size of a batch in bytes; 0 or less means one frame.

        Returns:
            An iterator over the batches. It raises NoSuchLedgerMetadata if the ledger is deleted, and an error of the
                bookies after it has lasted for 30 seconds.
        """
        return Batches(self._scope, self._reader.follow(first, max_count=max_count, max_size=max_size))

    async def read_last_add_confirmed(self) -> int:
        """Ask enough bookies for the LAC that no higher LAC which a reader has seen before can be missed.

        Returns:
            The LAC, or -1 if no entry is acknowledged.

        Raises:
            ReadError: Too few bookies answered. The error of one of the bookies may be raised instead.
        """
        return await self._scope.run(self._reader.read_last_add_confirmed())

    async def try_read_last_add_confirmed(self) -> int:
        """Ask the bookies for the LAC, and take the first answer that is higher than the known LAC.

        This is cheaper than `read_last_add_confirmed`, but the result may be older.

        Returns:
            The LAC, or -1 if no entry is known to be acknowledged.

        Raises:
            LedgerRecoveryError: No bookie gave a valid answer.
        """
        return await self._scope.run(self._reader.try_read_last_add_confirmed())

    async def read_last_add_confirmed_and_entry(
        self, entry: int, timeout_ms: int, *, parallel: bool = False
    ) -> LastConfirmed:
        """Wait until an entry is acknowledged, and return it with the LAC.

        With V2 bookies answer at once instead of waiting.

        Args:
            entry: The id of the entry.
            timeout_ms: How long each bookie may wait, in milliseconds. It must be below `readEntryTimeoutSec`.
            parallel: Whether to ask all bookies of the ensemble at the same time, not one after the other.

        Returns:
            `LastConfirmed(lac, entry)`, where `entry` is a batch with this one entry, or None if the entry was not
                acknowledged in time or its data did not come with the response.
        """
        return await self._scope.run(
            self._reader.read_last_add_confirmed_and_entry(entry, timeout_ms, parallel=parallel)
        )


class ReadHandle(Reading):
    """A handle for reading a ledger. It is an async context manager; leaving it closes the handle, not the ledger."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop following the ledger's metadata, and refuse further reads. Further calls do nothing."""
        self._release()

    def _release(self) -> None:
        """Do what `close` does, for callers that cannot await it."""
        self._closed = True
        self._reading.close()

    def __aiter__(self) -> "Entries":
        """Iterate over the entries from the first to the last that this handle knows to be acknowledged."""
        return Entries(self.batches())

    def __len__(self) -> int:
        """Return the number of entries over which `__aiter__` iterates."""
        return self.last_add_confirmed + 1

    def __bool__(self) -> bool:
        """Return True, also for a ledger without entries."""
        return True

    def __repr__(self) -> str:
        state = "closed handle" if self._closed else "closed" if self.is_closed else "open"
        return f"<ReadHandle of ledger {self.id}, {state}, LAC {self.last_add_confirmed}>"


class Entries(AsyncIterator[Entry]):
    """The entries of batches, one by one. A call that is cancelled loses none of them."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._entries: Iterator[Entry] = iter(())

    async def __anext__(self) -> Entry:
        while True:
            for entry in self._entries:
                return entry
            self._entries = iter(await anext(self._batches))

    async def aclose(self) -> None:
        """Stop reading ahead; needed only if the iteration is left before its end."""
        await self._batches.aclose()


class _Nothing(Batched):
    async def ready(self, limit: int = 0) -> list[EntryBatch]:
        del limit
        return []

    async def aclose(self) -> None:
        """Do nothing."""
