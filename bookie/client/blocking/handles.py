"""The handle for reading a ledger, for threads, which forwards to the one of `bookie.client.aio`. Any thread.

A method waits for its result; a method whose name ends in `_async` returns a `concurrent.futures.Future` of it. Entry
ids start at 0. Every read raises, besides what it documents, IncorrectParameter if an argument is out of its range,
ReadError if an entry above the LAC is requested, RequestTimeout if it takes longer than it may, LedgerClosed if the
handle was closed, and ClientClosed if the client was.
"""

import math
import time
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from bookie.client import aio
from bookie.client.aio.reading import Batches as AioBatches
from bookie.client.aio.reading import Reading
from bookie.client.blocking.batches import Batches, LoopSource
from bookie.client.blocking.direct_batches import DirectBatches
from bookie.client.blocking.direct_reads import DirectReads
from bookie.client.bookies import BookieClient
from bookie.client.entries.verified import Entry, EntryBatch
from bookie.client.event_loop.thread import LoopThread
from bookie.client.ledgers.lac_reads import LastConfirmed
from bookie.client.ledgers.reader import MIB
from bookie.metadata.records.ledger_metadata import LedgerMetadata

__all__ = ["Batches", "Handle", "ReadHandle"]

R = TypeVar("R", bound=Reading)


class Handle(Generic[R]):
    """The methods for reading a ledger, which read handles and write handles share."""

    def __init__(self, thread: LoopThread, handle: R, bookies: BookieClient) -> None:
        self._thread = thread
        self._handle = handle
        self._direct = DirectReads(thread, handle, bookies)
        self._batch_stats = bookies.batch_stats

    @property
    def id(self) -> int:
        """The ledger's id."""
        return self._handle.id

    @property
    def metadata(self) -> LedgerMetadata:
        """The newest metadata that this handle has seen: quorum sizes, state and ensembles."""
        return self._handle.metadata

    @property
    def custom_metadata(self) -> Mapping[str, bytes]:
        """The custom metadata that the ledger was created with."""
        return self._handle.custom_metadata

    @property
    def last_add_confirmed(self) -> int:
        """The highest LAC that this handle has seen, or -1. Every entry up to it is acknowledged and stays in the
        ledger.
        """
        return self._handle.last_add_confirmed

    @property
    def length(self) -> int:
        """Bytes of payload in the ledger, as far as this handle knows; the total if the ledger is closed."""
        return self._handle.length

    @property
    def is_closed(self) -> bool:
        """Whether no more entries can be added to the ledger."""
        return self._handle.is_closed

    def read(self, first: int, last: int | None = None, *, timeout: float | None = None) -> EntryBatch:
        """Read a range of entries into memory. Use `batches` for more than a few megabytes.

        Args:
            first: The id of the first entry.
            last: The id of the last entry, inclusive and at most the LAC; None reads only `first`.
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Returns:
            The entries, in order and complete.

        Raises:
            ReadError: `last` is above the LAC, or no replica of an entry can be read.
            BookKeeperError: The error of the first entry that cannot be read, such as NoSuchEntry or DigestMismatch.
        """
        began = time.monotonic()
        if last is None or last == first:
            got = self._direct.read(first, timeout)
        else:
            got = self._direct.read_range(first, last, timeout)
        if got is not None:
            return got
        return self._thread.run(self._handle.read(first, last), self._direct.left(began, timeout))

    def read_async(self, first: int, last: int | None = None) -> Future[EntryBatch]:
        """Read a range of entries like `read`, without waiting.

        Args:
            first: See `read`.
            last: See `read`.

        Returns:
            A future of the entries, or of an error of `read`.

        Raises:
            ClientClosed: The client is closed.
        """
        return self._thread.submit(self._handle.read(first, last))

    def read_unconfirmed(self, first: int, last: int | None = None, *, timeout: float | None = None) -> EntryBatch:
        """Read a range of entries like `read`, but also above the LAC.

        An entry above the LAC may not be in the ledger any more when the ledger is closed.

        Args:
            first: The id of the first entry.
            last: The id of the last entry, inclusive, which may be above the LAC; None reads only `first`.
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Returns:
            The entries, in order and complete.

        Raises:
            ReadError: No replica of an entry can be read.
            BookKeeperError: The error of the first entry that cannot be read, such as NoSuchEntry or DigestMismatch.
        """
        return self._thread.run(self._handle.read_unconfirmed(first, last), timeout)

    def read_unconfirmed_async(self, first: int, last: int | None = None) -> Future[EntryBatch]:
        """Read a range of entries like `read_unconfirmed`, without waiting.

        Args:
            first: See `read_unconfirmed`.
            last: See `read_unconfirmed`.

        Returns:
            A future of the entries, or of an error of `read_unconfirmed`.

        Raises:
            ClientClosed: The client is closed.
        """
        return self._thread.submit(self._handle.read_unconfirmed(first, last))

    def read_last_entry(self, *, timeout: float | None = None) -> Entry:
        """Ask the bookies for the LAC, and return the entry at it.

        Raises:
            NoSuchEntry: No entry is acknowledged yet.
        """
        return self._thread.run(self._handle.read_last_entry(), timeout)

    def batch_read(
        self, first: int, max_count: int = 0, max_size: int = 0, *, timeout: float | None = None
    ) -> EntryBatch:
        """Read some entries with one response of one bookie: one or more, none of them above the LAC.

        The result may be shorter than both limits allow, for instance at an ensemble change; continue with entry
        `batch.last + 1`. Where bookies do not support batch reads, the result is read entry by entry.

        Args:
            first: The id of the first entry.
            max_count: The highest number of entries; 0 means no limit.
            max_size: The highest size of the response in bytes. 0 or less, and more than a frame, mean one frame
                (`nettyMaxFrameSizeBytes`). The first entry is always returned.
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Returns:
            The entries, in order.

        Raises:
            ReadError: `first` is above the LAC, or no replica of it can be read.
            BookKeeperError: The error of the first entry, such as NoSuchEntry or DigestMismatch.
        """
        began = time.monotonic()
        if (batch := self._direct.batch_read(first, max_count, max_size, timeout)) is not None:
            self._batch_stats.read(time.monotonic() - began, len(batch), len(batch.buffer))
            return batch
        call = self._handle.batch_read(first, max_count, max_size)
        return self._thread.run(call, self._direct.left(began, timeout))

    def batch_read_async(self, first: int, max_count: int = 0, max_size: int = 0) -> Future[EntryBatch]:
        """Read some entries like `batch_read`, without waiting.

        Args:
            first: See `batch_read`.
            max_count: See `batch_read`.
            max_size: See `batch_read`.

        Returns:
            A future of the entries, or of an error of `batch_read`.

        Raises:
            ClientClosed: The client is closed.
        """
        return self._thread.submit(self._handle.batch_read(first, max_count, max_size))

    def batch_read_unconfirmed(
        self, first: int, max_count: int = 0, max_size: int = 0, *, timeout: float | None = None
    ) -> EntryBatch:
        """Read some entries like `batch_read`, but also above the LAC; see `read_unconfirmed`.

        Args:
            first: The id of the first entry, which may be above the LAC.
            max_count: The highest number of entries; 0 means no limit.
            max_size: The highest size of the response in bytes; 0, and more than a frame, mean one frame.
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Returns:
            The entries, in order.

        Raises:
            IncorrectParameter: `max_size` is negative.
            ReadError: No replica of the first entry can be read.
            BookKeeperError: The error of the first entry, such as NoSuchEntry or DigestMismatch.
        """
        return self._thread.run(self._handle.batch_read_unconfirmed(first, max_count, max_size), timeout)

    def batch_read_unconfirmed_async(self, first: int, max_count: int = 0, max_size: int = 0) -> Future[EntryBatch]:
        """Read some entries like `batch_read_unconfirmed`, without waiting.

        Args:
            first: See `batch_read_unconfirmed`.
            max_count: See `batch_read_unconfirmed`.
            max_size: See `batch_read_unconfirmed`.

        Returns:
            A future of the entries, or of an error of `batch_read_unconfirmed`.

        Raises:
            ClientClosed: The client is closed.
        """
        return self._thread.submit(self._handle.batch_read_unconfirmed(first, max_count, max_size))

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

        if last is None:
            last = self.last_add_confirmed
        handle = self._handle

        async def batches() -> AioBatches:
            return handle.batches(first, last, max_count=max_count, max_size=max_size)

        async def stretch(start: int, end: int) -> AioBatches:
            return handle.batches_begun(start, end, max_count, max_size)

        by_loop = LoopSource(self._thread, self._thread.run(batches()))
        if not self._direct.batched:
            return Batches(by_loop)
        return Batches(DirectBatches(self._direct, stretch, first, last, self._direct.sizes(max_count, max_size)))

    def follow(self, first: int = 0, *, max_count: int = 0, max_size: int = MIB) -> Batches:
        """Read entries in batches as they are acknowledged, until the ledger is closed.

        Bookies learn the LAC with the next add. The last entry of a ledger therefore arrives only when another entry
        is added, when the writer sends an explicit LAC (`explicitLacInterval`), or when the ledger is closed.

        Args:
            first: The id of the first entry.
            max_count: The highest number of entries in a batch; 0 means no limit.
            max_size: The highest size of a batch in bytes; 0 or less means one frame.

        Returns:
            An iterator over the batches, which waits for the next one. It raises NoSuchLedgerMetadata if the ledger
                is deleted, and an error of the bookies after it has lasted for 30 seconds.
        """

        async def follow() -> AioBatches:
            return self._handle.follow(first, max_count=max_count, max_size=max_size)

        return Batches(LoopSource(self._thread, self._thread.run(follow())), timeout=math.inf)

    def read_last_add_confirmed(self, *, timeout: float | None = None) -> int:
        """Ask enough bookies for the LAC that no higher LAC which a reader has seen before can be missed.

        Returns:
            The LAC, or -1 if no entry is acknowledged.

        Raises:
            ReadError: Too few bookies answered. The error of one of the bookies may be raised instead.
        """
        return self._thread.run(self._handle.read_last_add_confirmed(), timeout)

    def read_last_add_confirmed_async(self) -> Future[int]:
        """Start a `read_last_add_confirmed`, and return a future of the LAC."""
        return self._thread.submit(self._handle.read_last_add_confirmed())

    def try_read_last_add_confirmed(self, *, timeout: float | None = None) -> int:
        """Ask the bookies for the LAC, and take the first answer that is higher than the known LAC.

        This is cheaper than `read_last_add_confirmed`, but the result may be older.

        Returns:
            The LAC, or -1 if no entry is known to be acknowledged.

        Raises:
            LedgerRecoveryError: No bookie gave a valid answer.
        """
        return self._thread.run(self._handle.try_read_last_add_confirmed(), timeout)

    def read_last_add_confirmed_and_entry(
        self, entry: int, timeout_ms: int, *, parallel: bool = False, timeout: float | None = None
    ) -> LastConfirmed:
        """Wait until an entry is acknowledged, and return it with the LAC.

        With V2 bookies answer at once instead of waiting.

        Args:
            entry: The id of the entry.
            timeout_ms: How long each bookie may wait, in milliseconds. It must be below `readEntryTimeoutSec`.
            parallel: Whether to ask all bookies of the ensemble at the same time, not one after the other.
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Returns:
            `LastConfirmed(lac, entry)`, where `entry` is a batch with this one entry, or None if the entry was not
                acknowledged in time or its data did not come with the response.
        """
        return self._thread.run(
            self._handle.read_last_add_confirmed_and_entry(entry, timeout_ms, parallel=parallel), timeout
        )

    def __repr__(self) -> str:
        return repr(self._handle)

    def _leave(self, close: Coroutine[Any, Any, None]) -> None:
        """Close the handle, except in a forked process, where there is nothing to close."""
        if self._thread.alive:
            self._thread.run(close)
        else:
            close.close()


class ReadHandle(Handle[aio.ReadHandle]):
    """A handle for reading a ledger. It is a context manager; leaving it closes the handle, not the ledger."""

    def close(self) -> None:
        """Stop following the ledger's metadata, and refuse further reads. Further calls do nothing."""
        self._leave(self._handle.close())

    def __iter__(self) -> Iterator[Entry]:
        """Yield the entries from the first to the last that this handle knows to be acknowledged."""
        with self.batches() as batches:
            for batch in batches:
                yield from batch

    def __len__(self) -> int:
        """Return the number of entries that `__iter__` yields."""
        return len(self._handle)

    def __bool__(self) -> bool:
        """Return True, also for a ledger without entries."""
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
