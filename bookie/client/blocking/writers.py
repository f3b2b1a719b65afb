"""The handles for writing a ledger, for threads; each forwards to a handle of `bookie.client.aio`. Any thread.

Every call that waits raises RequestTimeout if it takes longer than its `timeout` in seconds, or `callTimeoutSec`.
"""

import time
from concurrent.futures import Future
from types import TracebackType
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie._fast.client.write_window import Add
from bookie.client import aio
from bookie.client.aio.writing import Writing
from bookie.client.blocking.appends import Append, finished
from bookie.client.blocking.direct_adds import DirectAdds
from bookie.client.blocking.handles import Handle
from bookie.client.bookies import BookieClient
from bookie.client.event_loop.thread import LoopThread

__all__ = ["AdvancedWriteHandle", "WriteHandle"]

W = TypeVar("W", bound=Writing)


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

    def flush(self, *, timeout: float | None = None) -> None:
        """Wait until all entries that were added so far are acknowledged.

        Raises:
            IllegalOperation: The writer chooses ids, and one below those that it added is missing, still after five
                seconds. The error names the id; the handle can still be used.
            BookKeeperError: The error of the first add that failed; `WriteHandle.append` lists the errors.
        """
        self._thread.run(self._handle.flush(), timeout)

    def force(self, *, timeout: float | None = None) -> None:
        """With deferred sync, have the bookies sync all acknowledged entries, and raise the LAC to the last of them.

        Raises:
            LedgerClosed: The ledger was closed, or an earlier add failed.
            BookKeeperError: The error of the first bookie that failed.
        """
        self._thread.run(self._handle.force(), timeout)

    def force_async(self) -> Future[None]:
        """Start a `force`, and return a future of its end."""
        return self._thread.submit(self._handle.force())

    def close(self, *, timeout: float | None = None) -> None:
        """Close the ledger after the last entry that was acknowledged.

        Further calls do nothing; if this one took longer than `timeout` or raised MetadataStoreError, they try again.

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
        self._thread.run(self._handle.close(), timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave(self._handle.__aexit__(kind, error, trace))

    def _add(self, data: Buffer, limit_s: float | None, entry: int = -1) -> Add:
        """Add an entry as soon as there is room for it, within `limit_s` seconds."""
        self._thread.check()
        writer = self._handle.writer
        if (add := writer.append_at_once(data, entry)) is None:
            add = self._thread.run(writer.append_async(data, entry), limit_s)  # a signal that interrupts it cancels it
        return add

    def _append(self, data: Buffer, timeout: float | None, entry: int = -1) -> int:
        limit_s = self._thread.limit(timeout)
        if limit_s is None:
            return finished(self._add(data, None, entry), None)
        until = time.monotonic() + limit_s
        add = self._add(data, limit_s, entry)
        return finished(add, max(until - time.monotonic(), 0))


class WriteHandle(Writer[aio.WriteHandle]):
    """A handle for writing a ledger whose entry ids are assigned in the order of the calls, from 0 on."""

    def __init__(self, thread: LoopThread, handle: aio.WriteHandle, bookies: BookieClient) -> None:
        super().__init__(thread, handle, bookies)
        self._direct_adds = DirectAdds(thread, handle.writer, bookies)

    def append(self, data: Buffer, *, timeout: float | None = None) -> int:
        """Add an entry and wait until it is acknowledged.

        Args:
            data: The payload. It is copied.
            timeout: Seconds to wait at most; None means `callTimeoutSec`.

        Returns:
            The entry id.

        Raises:
            RequestTimeout: It was not acknowledged within `timeout`. If the text names the entry, it may be later.
            IncorrectParameter: The entry does not fit into a frame; the handle can still be used.
            TooManyRequests: There was no room for the add within `waitTimeoutOnBackpressureMs`; the handle can still
                be used.
            LedgerFenced: Another client recovers the ledger. This add and all later ones fail.
            NotEnoughBookies: A failed bookie could not be replaced. This add and all later ones fail.
            AddQuorumTimeout: The ack quorum did not answer in time. This add and all later ones fail.
            ClientClosed: The client was closed.
            LedgerClosed: The handle was closed, or an earlier add failed.
        """
        began = time.monotonic()
        added = self._direct_adds.append(data, timeout)
        if isinstance(added, int):
            return added
        left = self._direct.left(began, timeout)
        return self._append(data, left) if added is None else finished(added, left)

    def append_async(self, data: Buffer, *, timeout: float | None = None) -> Append:
        """Add an entry, and wait only until there is room in the window of pending adds (`maxOutstandingAdds`).

        Args:
            data: The payload. It is copied.
            timeout: Seconds to wait for room at most; None means `callTimeoutSec`.

        Returns:
            The pending add, a future of the entry id, or of one of the errors of `append`.

        Raises:
            IncorrectParameter: The entry does not fit into a frame.
            TooManyRequests: There was no room within `waitTimeoutOnBackpressureMs`.
            LedgerClosed: The handle was closed, or an earlier add failed.
        """
        return Append(self._add(data, self._thread.limit(timeout)))

    def append_all(self, payloads: Buffer, offsets: NDArray[np.int64], *, timeout: float | None = None) -> int:
        """Add many entries, and wait only until there is room for them; `flush` waits until they are acknowledged.

        Args:
            payloads: The payloads one after the other, as in an Arrow binary array. They are copied.
            offsets: int64, shape (n + 1,): entry k is payloads[offsets[k]:offsets[k + 1]].
            timeout: Seconds to wait for room at most; None means `callTimeoutSec`. `last_add_pushed` then tells which
                entries were added.

        Returns:
            The id of the last entry, or -1 if the ledger has none.

        Raises:
            IncorrectParameter: The offsets are invalid, or an entry does not fit into a frame.
            TooManyRequests: There was no room within `waitTimeoutOnBackpressureMs`.
            LedgerClosed: The handle was closed, or an earlier add failed.
        """
        if (limit_s := self._thread.limit(timeout)) is not None:
            return self._thread.run(self._handle.append_all(payloads, offsets), limit_s)
        self._thread.check()
        return self._handle.writer.append_all_from_thread(payloads, offsets, self._thread.run)


class AdvancedWriteHandle(Writer[aio.AdvancedWriteHandle]):
    """A handle for writing a ledger whose entry ids are chosen by the writer.

    Entries may be added in any order of their ids. They are acknowledged in ascending order, so a missing id holds up
    the acknowledgement of all entries above it. When the window of pending adds is full of such entries, further adds
    fail with TooManyRequests after five seconds, and the error names the missing id; the add of that id itself has
    always room. Leaving the block while an id is missing raises IllegalOperation, and the ledger ends before that id.
    """

    def append(self, entry: int, data: Buffer, *, timeout: float | None = None) -> int:
        """Add an entry with the given id and wait until it is acknowledged.

        Args:
            entry: The entry id, at least 0.
            data: The payload. It is copied.
            timeout: See `WriteHandle.append`.

        Returns:
            The entry id.

        Raises:
            DuplicateEntryId: An entry with this id was added before.
            IncorrectParameter: The id is negative, or the entry does not fit into a frame.
            TooManyRequests: All pending adds wait for an id that was not added; the handle can still be used.
            BookKeeperError: Any other error of `WriteHandle.append`.
        """
        return self._append(data, timeout, self._handle.checked(entry))

    def append_async(self, entry: int, data: Buffer, *, timeout: float | None = None) -> Append:
        """Add an entry with the given id, and wait only until there is room in the window of pending adds.

        Args:
            entry: The entry id, at least 0.
            data: The payload. It is copied.
            timeout: Seconds to wait for room at most; None means `callTimeoutSec`.

        Returns:
            The pending add, a future of the entry id, or of one of the errors of `append`.

        Raises:
            DuplicateEntryId: An entry with this id was added before.
            IncorrectParameter: The id is negative, or the entry does not fit into a frame.
            TooManyRequests: All pending adds wait for an id that was not added; the handle can still be used.
        """
        return Append(self._add(data, self._thread.limit(timeout), self._handle.checked(entry)))
