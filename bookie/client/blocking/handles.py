"""Handles of ledgers for threads: the same as those of `bookie.client.aio`, which tell more. Any thread.

Calls wait for their result; those that end in `_async` return a `concurrent.futures.Future` of it.
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
    """An add that is under way."""

    __slots__ = ("_add",)

    def __init__(self, add: Add) -> None:
        self._add = add

    def done(self) -> bool:
        """Whether it is acknowledged or has failed."""
        return self._add.done()

    def result(self, timeout: float | None = None) -> int:
        """Wait until it is acknowledged; the entry id. Raises what ended it; RequestTimeout after `timeout` seconds."""
        if not self._add.wait(-1 if timeout is None else timeout):
            raise RequestTimeout(f"entry {self._add.entry}: not acknowledged within {timeout} s; it may be yet")
        return self._add.result()


class Batches(Iterator[EntryBatch]):
    """Batches of entries that follow each other, read ahead. A context manager, for those that leave it early."""

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
        """Read nothing ahead any more. Twice is fine."""
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
    """What can be read of a ledger, through either kind of handle."""

    def __init__(self, thread: LoopThread, handle: R) -> None:
        self._thread = thread
        self._handle = handle

    @property
    def id(self) -> int:
        """The ledger's id."""
        return self._handle.id

    @property
    def metadata(self) -> LedgerMetadata:
        """The newest that this handle has seen: quorums, state, ensembles."""
        return self._handle.metadata

    @property
    def custom_metadata(self) -> Mapping[str, bytes]:
        """What the creator put there."""
        return self._handle.custom_metadata

    @property
    def last_add_confirmed(self) -> int:
        """The LAC as far as this handle knows: every entry up to it is acknowledged for ever; -1: none."""
        return self._handle.last_add_confirmed

    @property
    def length(self) -> int:
        """Payload bytes of the ledger, as far as this handle knows."""
        return self._handle.length

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be added to the ledger any more."""
        return self._handle.is_closed

    def read(self, first: int, last: int | None = None) -> EntryBatch:
        """Entries `first` to `last` (None: only `first`), all in memory. IncorrectParameter, ReadError."""
        return self._thread.run(self._handle.read(first, last))

    def read_async(self, first: int, last: int | None = None) -> Future[EntryBatch]:
        """`read` without waiting."""
        return self._thread.submit(self._handle.read(first, last))

    def read_unconfirmed(self, first: int, last: int | None = None) -> EntryBatch:
        """`read` that goes beyond the LAC: what it returns there may not be in the ledger once that is closed."""
        return self._thread.run(self._handle.read_unconfirmed(first, last))

    def read_unconfirmed_async(self, first: int, last: int | None = None) -> Future[EntryBatch]:
        """`read_unconfirmed` without waiting."""
        return self._thread.submit(self._handle.read_unconfirmed(first, last))

    def read_last_entry(self) -> Entry:
        """The entry at the LAC, which is refreshed first. NoSuchEntry: nothing is acknowledged yet."""
        return self._thread.run(self._handle.read_last_entry())

    def batch_read(self, first: int, max_count: int = 0, max_size: int = 0) -> EntryBatch:
        """Some entries from `first` on, one at least, up to the LAC at most: in one answer of one bookie.

        At most `max_count` (0: no such limit) in `max_size` bytes (0: a frame). Go on behind `batch.last`.
        """
        return self._thread.run(self._handle.batch_read(first, max_count, max_size))

    def batch_read_async(self, first: int, max_count: int = 0, max_size: int = 0) -> Future[EntryBatch]:
        """`batch_read` without waiting."""
        return self._thread.submit(self._handle.batch_read(first, max_count, max_size))

    def batch_read_unconfirmed(self, first: int, max_count: int = 0, max_size: int = 0) -> EntryBatch:
        """`batch_read` that goes beyond the LAC; see `read_unconfirmed`."""
        return self._thread.run(self._handle.batch_read_unconfirmed(first, max_count, max_size))

    def batch_read_unconfirmed_async(self, first: int, max_count: int = 0, max_size: int = 0) -> Future[EntryBatch]:
        """`batch_read_unconfirmed` without waiting."""
        return self._thread.submit(self._handle.batch_read_unconfirmed(first, max_count, max_size))

    def batches(self, first: int = 0, last: int | None = None, *, max_count: int = 0, max_size: int = MIB) -> Batches:
        """All entries from `first` to `last` (None: the LAC) in order, read ahead within `maxReadBytesInFlight`."""

        async def batches() -> AioBatches:
            return self._handle.batches(first, last, max_count=max_count, max_size=max_size)

        return Batches(self._thread, self._thread.run(batches()))

    def follow(self, first: int = 0, *, max_count: int = 0, max_size: int = MIB) -> Batches:
        """Entries from `first` on as they are acknowledged, until somebody closes the ledger."""

        async def follow() -> AioBatches:
            return self._handle.follow(first, max_count=max_count, max_size=max_size)

        return Batches(self._thread, self._thread.run(follow()))

    def read_last_add_confirmed(self) -> int:
        """The LAC, asked of enough bookies."""
        return self._thread.run(self._handle.read_last_add_confirmed())

    def read_last_add_confirmed_async(self) -> Future[int]:
        """`read_last_add_confirmed` without waiting."""
        return self._thread.submit(self._handle.read_last_add_confirmed())

    def try_read_last_add_confirmed(self) -> int:
        """A LAC, the first better than the known one: cheaper, and may lag behind."""
        return self._thread.run(self._handle.try_read_last_add_confirmed())

    def read_last_add_confirmed_and_entry(
        self, entry: int, timeout_ms: int, *, parallel: bool = False
    ) -> LastConfirmed:
        """(lac, batch of one or None): wait until `entry` is acknowledged, `timeout_ms` at most at each bookie."""
        return self._thread.run(self._handle.read_last_add_confirmed_and_entry(entry, timeout_ms, parallel=parallel))

    def _leave(self, close: Coroutine[Any, Any, None]) -> None:
        """Close, unless the process was forked: then there is nothing to close here."""
        if self._thread.alive:
            self._thread.run(close)
        else:
            close.close()


class ReadHandle(Handle[aio.ReadHandle]):
    """A ledger that was opened. A context manager; leaving it closes the handle, not the ledger."""

    def close(self) -> None:
        """Follow the ledger no more. Twice is fine."""
        self._leave(self._handle.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Writer(Handle[W]):
    """What both kinds of writers can do. A context manager: leaving it closes the ledger.

    Leaving it without an error waits for all adds first, and raises what ended the first that failed. With an error,
    what is pending is given up: the ledger ends behind the last entry that was acknowledged.
    """

    @property
    def last_add_pushed(self) -> int:
        """The highest entry id given out so far, -1: none."""
        return self._handle.last_add_pushed

    def flush(self) -> None:
        """Wait until everything added so far is acknowledged. Raises what ended the first that is not."""
        self._thread.run(self._handle.flush())

    def force(self) -> None:
        """With deferred sync: have what was acknowledged synced by all bookies, then raise the LAC to it."""
        self._thread.run(self._handle.force())

    def force_async(self) -> Future[None]:
        """`force` without waiting."""
        return self._thread.submit(self._handle.force())

    def close(self) -> None:
        """Close the ledger behind the last entry that was acknowledged; pending adds end with LedgerClosed.

        `flush` before, to wait for them. MetadataVersionConflict: somebody else closed it elsewhere. Twice is fine.
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
    """A ledger that was created here; ids are given in the order of the calls."""

    def append(self, data: Buffer) -> int:
        """Add an entry and wait until it is acknowledged; its id.

        LedgerFenced (somebody recovers the ledger), NotEnoughBookies, AddQuorumTimeout, ClientClosed: this and all
        later adds have failed. LedgerClosed: an earlier one had. IncorrectParameter: larger than a frame.
        """
        add = self._add(data)
        add.wait()
        return add.result()

    def append_async(self, data: Buffer) -> Append:
        """Add an entry, and wait only for room (`maxOutstandingAdds`). Ask the result for its id, or its error."""
        return Append(self._add(data))

    def append_all(self, payloads: Buffer, offsets: NDArray[np.int64]) -> int:
        """Add payloads[offsets[k]:offsets[k + 1]] for each k, as an Arrow binary array has them; the last entry's id.

        It waits for room only: `flush` waits until all are acknowledged. IncorrectParameter, LedgerClosed.
        """
        self._thread.check()
        return self._handle.writer.append_all_from_thread(payloads, offsets)


class AdvancedWriteHandle(Writer[aio.AdvancedWriteHandle]):
    """A ledger that was created here, whose writer chooses the entry ids, in any order.

    What is acknowledged is told in the order of the ids, so a gap holds up what is behind.
    """

    def append(self, entry: int, data: Buffer) -> int:
        """`WriteHandle.append` under that id. DuplicateEntryId, IncorrectParameter."""
        add = self._add(data, self._handle.checked(entry))
        add.wait()
        return add.result()

    def append_async(self, entry: int, data: Buffer) -> Append:
        """`WriteHandle.append_async` under that id. DuplicateEntryId, IncorrectParameter."""
        return Append(self._add(data, self._handle.checked(entry)))
