"""The handles for reading and writing a ledger, for threads; each forwards to a handle of `bookie.client.aio`. Any
thread.

A method waits for its result; a method whose name ends in `_async` returns a `concurrent.futures.Future` of it. Entry
ids start at 0. Every read raises, besides what it documents, IncorrectParameter if an argument is out of its range,
ReadError if an entry above the LAC is requested, LedgerClosed if the handle was closed, and ClientClosed if the
client was.
"""

from collections import deque
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie._fast.client.write_window import Add
from bookie.client import aio
from bookie.client.aio.reading import Batches as AioBatches
from bookie.client.aio.reading import Reading
from bookie.client.aio.writing import Writing
from bookie.client.entries.verified import Entry, EntryBatch
from bookie.client.event_loop.thread import LoopThread
from bookie.client.ledgers.lac_reads import LastConfirmed
from bookie.client.ledgers.reader import MIB
from bookie.errors import RequestTimeout
from bookie.metadata.records.ledger_metadata import LedgerMetadata

__all__ = ["AdvancedWriteHandle", "Append", "Batches", "ReadHandle", "WriteHandle"]

R = TypeVar("R", bound=Reading)
W = TypeVar("W", bound=Writing)


class Append:
    """A pending add."""

    __slots__ = ("_add",)

    def __init__(self, add: Add) -> None:
        self._add = add

    def done(self) -> bool:
        """Return whether the add was acknowledged or has failed."""
        return self._add.done()

    def result(self, timeout: float | None = None) -> int:
        """Wait until the add is acknowledged.

        Args:
            timeout: How many seconds to wait at most; None means no limit.

        Returns:
            The entry id.

        Raises:
            RequestTimeout: The add was not acknowledged within `timeout`. It may be acknowledged later.
            BookKeeperError: The error that ended the add; `WriteHandle.append` lists them.
        """
        if not self._add.wait(-1 if timeout is None else timeout):
            raise RequestTimeout(
                f"entry {self._add.entry}: not acknowledged within {timeout} s; it may be acknowledged later"
            )
        return self._add.result()


class Batches(Iterator[EntryBatch]):
    """An iterator over consecutive batches of entries, which are read ahead.

    It is a context manager; use it as one, or call `close`, to leave the iteration before its end.
    """

    def __init__(self, thread: LoopThread, batches: AioBatches) -> None:
        self._thread = thread
        self._batches = batches
        self._ready: deque[EntryBatch] = deque()

    def __next__(self) -> EntryBatch:
        if not self._ready:
            self._ready.extend(self._thread.run(self._batches.ready()))
            if not self._ready:
                raise StopIteration
        return self._ready.popleft()

    def close(self) -> None:
        """Stop reading ahead. Further calls do nothing."""
        self._ready.clear()
        if self._thread.alive:
            self._thread.run(self._batches.aclose())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Handle(Generic[R]):
    """The methods for reading a ledger, which read handles and write handles share."""

    def __init__(self, thread: LoopThread, handle: R) -> None:
        self._thread = thread
        self._handle = handle

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

    def read(self, first: int, last: int | None = None) -> EntryBatch:
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
        return self._thread.run(self._handle.read(first, last))

    def read_async(self, first: int, last: int | None = None) -> Future[EntryBatch]:
        """Start to read a range of entries like `read`, and return a future of the entries."""
        return self._thread.submit(self._handle.read(first, last))

    def read_unconfirmed(self, first: int, last: int | None = None) -> EntryBatch:
        """Read a range of entries like `read`, but also above the LAC.

        An entry above the LAC may not be in the ledger any more when the ledger is closed. Arguments and errors are
        those of `read`, except that `last` may be above the LAC.
        """
        return self._thread.run(self._handle.read_unconfirmed(first, last))

    def read_unconfirmed_async(self, first: int, last: int | None = None) -> Future[EntryBatch]:
        """Start to read a range of entries like `read_unconfirmed`, and return a future of the entries."""
        return self._thread.submit(self._handle.read_unconfirmed(first, last))

    def read_last_entry(self) -> Entry:
        """Ask the bookies for the LAC, and return the entry at it.

        Raises:
            NoSuchEntry: No entry is acknowledged yet.
        """
        return self._thread.run(self._handle.read_last_entry())

    def batch_read(self, first: int, max_count: int = 0, max_size: int = 0) -> EntryBatch:
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
        return self._thread.run(self._handle.batch_read(first, max_count, max_size))

    def batch_read_async(self, first: int, max_count: int = 0, max_size: int = 0) -> Future[EntryBatch]:
        """Start a `batch_read`, and return a future of the entries."""
        return self._thread.submit(self._handle.batch_read(first, max_count, max_size))

    def batch_read_unconfirmed(self, first: int, max_count: int = 0, max_size: int = 0) -> EntryBatch:
        """Read some entries like `batch_read`, but also above the LAC; see `read_unconfirmed`.

        Arguments are those of `batch_read`; a negative `max_size` raises IncorrectParameter.
        """
        return self._thread.run(self._handle.batch_read_unconfirmed(first, max_count, max_size))

    def batch_read_unconfirmed_async(self, first: int, max_count: int = 0, max_size: int = 0) -> Future[EntryBatch]:
        """Start a `batch_read_unconfirmed`, and return a future of the entries."""
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

        async def batches() -> AioBatches:
            return self._handle.batches(first, last, max_count=max_count, max_size=max_size)

        return Batches(self._thread, self._thread.run(batches()))

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

        return Batches(self._thread, self._thread.run(follow()))

    def read_last_add_confirmed(self) -> int:
        """Ask enough bookies for the LAC that no higher LAC which a reader has seen before can be missed.

        Returns:
            The LAC, or -1 if no entry is acknowledged.

        Raises:
            ReadError: Too few bookies answered. The error of one of the bookies may be raised instead.
        """
        return self._thread.run(self._handle.read_last_add_confirmed())

    def read_last_add_confirmed_async(self) -> Future[int]:
        """Start a `read_last_add_confirmed`, and return a future of the LAC."""
        return self._thread.submit(self._handle.read_last_add_confirmed())

    def try_read_last_add_confirmed(self) -> int:
        """Ask the bookies for the LAC, and take the first answer that is higher than the known LAC.

        This is cheaper than `read_last_add_confirmed`, but the result may be older.

        Returns:
            The LAC, or -1 if no entry is known to be acknowledged.

        Raises:
            LedgerRecoveryError: No bookie gave a valid answer.
        """
        return self._thread.run(self._handle.try_read_last_add_confirmed())

    def read_last_add_confirmed_and_entry(
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
        return self._thread.run(self._handle.read_last_add_confirmed_and_entry(entry, timeout_ms, parallel=parallel))

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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Writer(Handle[W]):
    """The methods that both kinds of write handles share. It is a context manager; leaving it closes the ledger.

    If the `with` block ends without an error, leaving it first waits for all adds, and raises the error of the first
    add that failed. If the block raises, pending adds are given up, and the ledger is closed after the last entry
    that was acknowledged. Both force acknowledged entries first, if syncs are deferred; see `close`.
    """

    @property
    def last_add_pushed(self) -> int:
        """The highest entry id that was added, whether it is acknowledged or not, or -1."""
        return self._handle.last_add_pushed

    def flush(self) -> None:
        """Wait until all entries that were added so far are acknowledged.

        Raises:
            IllegalOperation: The writer chooses ids, and one below those that it added is missing, still after five
                seconds. The error names the id; the handle can still be used.
            BookKeeperError: The error of the first add that failed; `WriteHandle.append` lists the errors.
        """
        self._thread.run(self._handle.flush())

    def force(self) -> None:
        """With deferred sync, have the bookies sync all acknowledged entries, and raise the LAC to the last of them.

        Raises:
            LedgerClosed: The ledger was closed, or an earlier add failed.
            BookKeeperError: The error of the first bookie that failed.
        """
        self._thread.run(self._handle.force())

    def force_async(self) -> Future[None]:
        """Start a `force`, and return a future of its end."""
        return self._thread.submit(self._handle.force())

    def close(self) -> None:
        """Close the ledger after the last entry that was acknowledged. Further calls do nothing.

        Pending adds fail with LedgerClosed; call `flush` before to wait for them. With deferred sync, the bookies
        first sync all acknowledged entries, as by `force`. If that fails, the ledger is closed after the last entry
        that was forced, and the error says which acknowledged entries are not in it.

        Raises:
            BookKeeperError: With deferred sync, the error of the bookie that did not sync.
            MetadataVersionConflict: Another client closed the ledger with a different last entry.
            LedgerFenced: Another client is recovering the ledger.
            MetadataStoreError: The metadata store refused, or did not answer in time.
            ClientClosed: The client was closed.
        """
        self._thread.run(self._handle.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave(self._handle.__aexit__(kind, error, trace))

    def _add(self, data: Buffer, entry: int = -1) -> Add:
        self._thread.check()
        return self._handle.writer.append_from_thread(data, entry)


class WriteHandle(Writer[aio.WriteHandle]):
    """A handle for writing a ledger whose entry ids are assigned in the order of the calls, from 0 on."""

    def append(self, data: Buffer) -> int:
        """Add an entry and wait until it is acknowledged.

        Args:
            data: The payload. It is copied.

        Returns:
            The entry id.

        Raises:
            IncorrectParameter: The entry does not fit into a frame; the handle can still be used.
            TooManyRequests: There was no room for the add within `waitTimeoutOnBackpressureMs`; the handle can still
                be used.
            LedgerFenced: Another client recovers the ledger. This add and all later ones fail.
            NotEnoughBookies: A failed bookie could not be replaced. This add and all later ones fail.
            AddQuorumTimeout: The ack quorum did not answer in time. This add and all later ones fail.
            ClientClosed: The client was closed.
            LedgerClosed: The handle was closed, or an earlier add failed.
        """
        add = self._add(data)
        add.wait()
        return add.result()

    def append_async(self, data: Buffer) -> Append:
        """Add an entry, and wait only until there is room in the window of pending adds (`maxOutstandingAdds`).

        Args:
            data: The payload. It is copied.

        Returns:
            The pending add; its `result` is the entry id, or raises one of the errors of `append`.

        Raises:
            IncorrectParameter: The entry does not fit into a frame.
            TooManyRequests: There was no room within `waitTimeoutOnBackpressureMs`.
            LedgerClosed: The handle was closed, or an earlier add failed.
        """
        return Append(self._add(data))

    def append_all(self, payloads: Buffer, offsets: NDArray[np.int64]) -> int:
        """Add many entries, and wait only until there is room for them; `flush` waits until they are acknowledged.

        Args:
            payloads: The payloads one after the other, as in an Arrow binary array. They are copied.
            offsets: int64, shape (n + 1,): entry k is payloads[offsets[k]:offsets[k + 1]].

        Returns:
            The id of the last entry, or -1 if the ledger has none.

        Raises:
            IncorrectParameter: The offsets are invalid, or an entry does not fit into a frame.
            TooManyRequests: There was no room within `waitTimeoutOnBackpressureMs`.
            LedgerClosed: The handle was closed, or an earlier add failed.
        """
        self._thread.check()
        return self._handle.writer.append_all_from_thread(payloads, offsets)


class AdvancedWriteHandle(Writer[aio.AdvancedWriteHandle]):
    """A handle for writing a ledger whose entry ids are chosen by the writer.

    Entries may be added in any order of their ids. They are acknowledged in ascending order, so a missing id holds up
    the acknowledgement of all entries above it. When the window of pending adds is full of such entries, further adds
    fail with TooManyRequests after five seconds, and the error names the missing id; the add of that id itself has
    always room. Leaving the block while an id is missing raises IllegalOperation, and the ledger ends before that id.
    """

    def append(self, entry: int, data: Buffer) -> int:
        """Add an entry with the given id and wait until it is acknowledged.

        Args:
            entry: The entry id, at least 0.
            data: The payload. It is copied.

        Returns:
            The entry id.

        Raises:
            DuplicateEntryId: An entry with this id was added before.
            IncorrectParameter: The id is negative, or the entry does not fit into a frame.
            TooManyRequests: All pending adds wait for an id that was not added; the handle can still be used.
            BookKeeperError: Any other error of `WriteHandle.append`.
        """
        add = self._add(data, self._handle.checked(entry))
        add.wait()
        return add.result()

    def append_async(self, entry: int, data: Buffer) -> Append:
        """Add an entry with the given id, and wait only until there is room in the window of pending adds.

        Args:
            entry: The entry id, at least 0.
            data: The payload. It is copied.

        Returns:
            The pending add; its `result` is the entry id, or raises one of the errors of `append`.

        Raises:
            DuplicateEntryId: An entry with this id was added before.
            IncorrectParameter: The id is negative, or the entry does not fit into a frame.
            TooManyRequests: All pending adds wait for an id that was not added; the handle can still be used.
        """
        return Append(self._add(data, self._handle.checked(entry)))
