"""The handle of a ledger that is written: one writer, entries in order, acknowledged in order. Event loop."""

from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie._fast.client.write_window import Add
from bookie.client.aio.reading import Reading
from bookie.client.aio.scope import Scope
from bookie.client.ledgers.reader import LedgerReader
from bookie.client.ledgers.writer import LedgerWriter
from bookie.errors import BookKeeperError, IncorrectParameter

__all__ = ["AdvancedWriteHandle", "WriteHandle", "Writing"]


class Writing(Reading):
    """What both kinds of writers can do. An async context manager: leaving it closes the ledger.

    Leaving it without an error waits for all adds first, and raises what ended the first that failed. With an error,
    what is pending is given up: the ledger ends behind the last entry that was acknowledged.
    """

    def __init__(self, scope: Scope, reader: LedgerReader, writer: LedgerWriter) -> None:
        super().__init__(scope, reader)
        self.writer = writer

    @property
    def _reader(self) -> LedgerReader:
        """The reader, which knows by now what the writer does."""
        reader = super()._reader
        self._tell(reader)
        return reader

    def _tell(self, reader: LedgerReader) -> None:
        reader.view.saw_metadata(self.writer.known.stored)
        reader.view.saw_lac(self.writer.last_add_confirmed)

    @property
    def last_add_confirmed(self) -> int:
        """Every entry up to this one is acknowledged, and synced; -1: none."""
        return self.writer.last_add_confirmed

    @property
    def last_add_pushed(self) -> int:
        """The highest entry id given out so far, -1: none."""
        return self.writer.last_add_pushed

    @property
    def length(self) -> int:
        """Payload bytes of everything that was added, acknowledged or not."""
        return self.writer.length

    @property
    def is_closed(self) -> bool:
        """Whether nothing more can be added."""
        return self._closed or self.writer.failure is not None

    async def flush(self) -> None:
        """Wait until everything added so far is acknowledged. Raises what ended the first that is not."""
        await self._scope.run(self.writer.flush())

    async def force(self) -> None:
        """Of a writer with deferred sync: have what was acknowledged synced by all bookies, then raise the LAC to it.

        LedgerClosed, IllegalOperation (V2), or the first bookie's failure.
        """
        await self._scope.run(self.writer.force())

    async def close(self) -> None:
        """Close the ledger behind the last entry that was acknowledged; adds that are pending end with LedgerClosed.

        `flush` before, to wait for them. With deferred sync, what was not forced is lost. MetadataVersionConflict:
        somebody else closed it elsewhere. MetadataStoreError. Twice is fine.
        """
        if self._closed:
            return
        try:
            await self._scope.run(self.writer.close())
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
                await self.flush()
        except BookKeeperError as failure:
            await _close_after(self, failure)
            raise
        if error is not None:
            await _close_after(self, error)
        else:
            await self.close()


async def _close_after(handle: Writing, error: BaseException) -> None:
    """Close it; what goes wrong then is a note on `error`, which is what the caller hears of."""
    try:
        await handle.close()
    except BookKeeperError as second:
        error.add_note(f"and the ledger could not be closed: {second}")


class WriteHandle(Writing):
    """A ledger that was created here; ids are given in the order of the calls."""

    async def append(self, data: Buffer) -> int:
        """Add an entry and wait until it is acknowledged; its id.

        LedgerFenced (somebody recovers the ledger), NotEnoughBookies, AddQuorumTimeout, ClientClosed: this and all
        later adds have failed. LedgerClosed: an earlier one had. IncorrectParameter: larger than a frame.
        """
        return await self.writer.append(data)

    async def append_async(self, data: Buffer) -> Add:
        """Add an entry, and wait only for room (`maxOutstandingAdds`): await the result for its id, or its error."""
        return await self.writer.append_async(data)

    async def append_all(self, payloads: Buffer, offsets: NDArray[np.int64]) -> int:
        """Add payloads[offsets[k]:offsets[k + 1]] for each k, as an Arrow binary array has them; the last entry's id.

        It waits for room only: `flush` waits until all are acknowledged. IncorrectParameter, LedgerClosed.
        """
        return await self.writer.append_all(payloads, offsets)


class AdvancedWriteHandle(Writing):
    """A ledger that was created here, whose writer chooses the entry ids.

    They may come in any order; what is acknowledged is told in the order of the ids, so a gap holds up what is behind.
    """

    async def append(self, entry: int, data: Buffer) -> int:
        """`WriteHandle.append` under that id. DuplicateEntryId, IncorrectParameter."""
        return await self.writer.append(data, self.checked(entry))

    async def append_async(self, entry: int, data: Buffer) -> Add:
        """`WriteHandle.append_async` under that id. DuplicateEntryId, IncorrectParameter."""
        return await self.writer.append_async(data, self.checked(entry))

    def checked(self, entry: int) -> int:
        """An entry id that can be one. IncorrectParameter."""
        if entry < 0:
            raise IncorrectParameter(f"ledger {self.id}: entry id {entry} must be at least 0")
        return entry
