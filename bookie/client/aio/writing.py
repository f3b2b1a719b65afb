"""The handles for writing a ledger. All methods run on the event loop.

A ledger has one writer. Entries are acknowledged in the order of their ids; after the first add that fails, all later
ones fail, too.
"""

import asyncio
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie.client.aio.reading import Reading
from bookie.client.aio.scope import Scope
from bookie.client.arguments import integer
from bookie.client.ledgers.reader import LedgerReader
from bookie.client.ledgers.writer import LedgerWriter
from bookie.errors import BookKeeperError, IncorrectParameter, MetadataStoreError

__all__ = ["AdvancedWriteHandle", "WriteHandle", "Writing"]


class Writing(Reading):
    """The methods that both kinds of write handles share. It is an async context manager; leaving it closes the
    ledger.

    If the `async with` block ends without an error, leaving it first waits for all adds, and raises the error of the
    first add that failed. If the block raises, pending adds are given up, and the ledger is closed after the last
    entry that was acknowledged. Both force acknowledged entries first, if syncs are deferred; see `close`.
    """

    def __init__(self, scope: Scope, reader: LedgerReader, writer: LedgerWriter) -> None:
        super().__init__(scope, reader)
        self.writer = writer
        self._close_again = False

    @property
    def _reader(self) -> LedgerReader:
        """The reader, after it has been told the writer's metadata and LAC."""
        reader = super()._reader
        self._tell(reader)
        return reader

    def _tell(self, reader: LedgerReader) -> None:
        reader.view.saw_metadata(self.writer.known.stored)
        reader.view.saw_lac(self.writer.last_add_confirmed)

    @property
    def last_add_confirmed(self) -> int:
        """The id of the last entry that is acknowledged (with deferred sync: synced) like all before it, or -1."""
        return self.writer.last_add_confirmed

    @property
    def last_add_pushed(self) -> int:
        """The highest entry id that was added, whether it is acknowledged or not, or -1."""
        return self.writer.last_add_pushed

    @property
    def length(self) -> int:
        """Bytes of payload of all entries that were added, whether they are acknowledged or not."""
        return self.writer.length

    @property
    def is_closed(self) -> bool:
        """Whether no more entries can be added."""
        return self._closed or self.writer.failure is not None

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else "open"
        lac, pending = self.last_add_confirmed, self.writer.pending
        return f"<{type(self).__name__} of ledger {self.id}, {state}, LAC {lac}, {pending} adds pending>"

    async def drain(self) -> None:
        """Wait until there is room in the window of pending adds (`maxOutstandingAdds`) behind all earlier calls.

        Raises:
            TooManyRequests: There was no room within `waitTimeoutOnBackpressureMs`, or all pending adds wait for an id
                that was not added.
            LedgerClosed: The handle was closed, or an earlier add failed.
        """
        if not self.writer.drained:
            await self._scope.run(self.writer.drain())

    async def flush(self) -> None:
        """Wait until all entries that were added so far are acknowledged.

        Raises:
            IllegalOperation: The writer chooses ids, and one below those that it added is missing, still after five
                seconds. The error names the id; the handle can still be used.
            BookKeeperError: The error of the first add that failed; `WriteHandle.append` lists the errors.
        """
        await self._scope.run(self.writer.flush())

    async def force(self) -> None:
        """With deferred sync, have the bookies sync all acknowledged entries, and raise the LAC to the last of them.

        Raises:
            LedgerClosed: The ledger was closed, or an earlier add failed.
            BookKeeperError: The error of the first bookie that failed.
        """
        await self._scope.run(self.writer.force())

    async def close(self) -> None:
        """Close the ledger after the last entry that was acknowledged.

        Further calls do nothing; if this one was cancelled or raised MetadataStoreError, they try again.

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
        if self._closed and not self._close_again:
            return
        self._close_again = False
        try:
            await self._scope.run(self.writer.close())
        except (MetadataStoreError, asyncio.CancelledError):
            self._close_again = True  # whether the ledger is closed is not known
            raise
        finally:
            self._closed = True
            self._tell(self._reading)
            self._reading.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None and not self._closed:
                await self._scope.run(self.writer.flush(gap_wait_s=0))
        except BookKeeperError as failure:
            await _close_after(self, failure)
            raise
        if error is not None:
            await _close_after(self, error)
        else:
            await self.close()


async def _close_after(handle: Writing, error: BaseException) -> None:
    """Close the handle after `error`; if that fails, add a note to `error`, which is what the caller sees."""
    try:
        await handle.close()
    except BookKeeperError as second:
        error.add_note(f"and closing the ledger failed: {second}")


class WriteHandle(Writing):
    """A handle for writing a ledger whose entry ids are assigned in the order of the calls, from 0 on."""

    async def append(self, data: Buffer) -> int:
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
        return await self.writer.append(data)

    def append_async(self, data: Buffer) -> asyncio.Future[int]:
        """Add an entry without waiting; it is no coroutine. Entries get their ids in the order of the calls.

        If there is no room in the window of pending adds (`maxOutstandingAdds`), a copy of the payload waits for it;
        `await drain()` between the calls to keep such copies few. Cancelling the future takes back only an entry that
        still waits for room.

        Args:
            data: The payload. It is copied.

        Returns:
            A future of the entry id, or of one of the errors of `append`. `flush` awaits all of them.

        Raises:
            IncorrectParameter: The entry does not fit into a frame.
            TooManyRequests: As many entries wait for room as `maxWaitingAddBytes` permits; `await drain()` first.
            LedgerClosed: The handle was closed, or an earlier add failed.
        """
        return self.writer.append_soon(data)

    async def append_all(self, payloads: Buffer, offsets: NDArray[np.int64]) -> int:
        """Add many entries, and wait only until there is room for them; `flush` waits until they are acknowledged.

        Args:
            payloads: The payloads one after the other, as in an Arrow binary array. They are copied.
            offsets: int64, shape (n + 1,): entry k is payloads[offsets[k]:offsets[k + 1]].

        Returns:
            The id of the last entry.

        Raises:
            IncorrectParameter: The offsets are invalid, or an entry does not fit into a frame.
            TooManyRequests: There was no room within `waitTimeoutOnBackpressureMs`.
            LedgerClosed: The handle was closed, or an earlier add failed.
        """
        return await self.writer.append_all(payloads, offsets)


class AdvancedWriteHandle(Writing):
    """A handle for writing a ledger whose entry ids are chosen by the writer.

    Entries may be added in any order of their ids. They are acknowledged in ascending order, so a missing id holds up
    the acknowledgement of all entries above it. When the window of pending adds is full of such entries, further adds
    fail with TooManyRequests after five seconds, and the error names the missing id; the add of that id itself has
    always room. Leaving the block while an id is missing raises IllegalOperation, and the ledger ends before that id.
    """

    async def append(self, entry: int, data: Buffer) -> int:
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
        return await self.writer.append(data, self.checked(entry))

    def append_async(self, entry: int, data: Buffer) -> asyncio.Future[int]:
        """Add an entry with the given id without waiting; see `WriteHandle.append_async`.

        Args:
            entry: The entry id, at least 0.
            data: The payload. It is copied.

        Returns:
            A future of the entry id, or of one of the errors of `append`.

        Raises:
            DuplicateEntryId: An entry with this id was added before.
            IncorrectParameter: The id is negative, or the entry does not fit into a frame.
            TooManyRequests: As many entries wait for room as `maxWaitingAddBytes` permits; `await drain()` first.
            LedgerClosed: The handle was closed, or an earlier add failed.
        """
        return self.writer.append_soon(data, self.checked(entry))

    def checked(self, entry: int) -> int:
        """Return `entry` if it is a valid entry id; raise IncorrectParameter if not."""
        if integer("entry", entry) < 0:
            raise IncorrectParameter(f"ledger {self.id}: entry id {entry} must be at least 0")
        return entry
