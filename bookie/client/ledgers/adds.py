"""Adding to a ledger: one entry or many, on the event loop or from another thread, as soon as there is room.

Only what has `from_thread` in its name may be called from other threads.
"""

import asyncio
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie._fast.client.write_window import Add, WriteWindow
from bookie.client.ledgers.throttle import Backpressure, Rate
from bookie.errors import (
    BookKeeperError,
    ClientClosed,
    DuplicateEntryId,
    IllegalOperation,
    IncorrectParameter,
    LedgerClosed,
)

__all__ = ["Adds"]

BURST = 128
"""Adds that one turn of the loop takes before others have theirs."""


class Adds(ABC):
    """The part of a `LedgerWriter` that takes entries; it sends them in `_send`."""

    ledger: int
    _window: WriteWindow
    _rate: Rate
    _backpressure: Backpressure
    _loop: asyncio.AbstractEventLoop | None
    _scheduled: bool

    @abstractmethod
    def _send(self) -> None:
        """What was added leaves for the bookies."""

    def try_append(self, payload: Buffer, entry: int = -1) -> Add | None:
        """Add an entry and return at once: what to await; None if there is no room. Takes no heed of the rate.

        `entry`: its id, for writers that choose ids. LedgerClosed, IncorrectParameter, DuplicateEntryId.
        """
        add = self._append(payload, entry)
        if add is not None and not self._scheduled and self._loop is not None:
            self._scheduled = True
            self._loop.call_soon(self._send)
        return add

    async def append_async(self, payload: Buffer, entry: int = -1) -> Add:
        """`try_append` as soon as there is room and the rate allows; await the answer where it is needed."""
        if self._rate.limited:
            await self._rate.turn()
        if self._window.unsent >= BURST:
            await asyncio.sleep(0)  # what was added leaves before more is
        add = self.try_append(payload, entry)
        while add is None:
            await self._backpressure.wait()
            add = self.try_append(payload, entry)
        return add

    async def append(self, payload: Buffer, entry: int = -1) -> int:
        """Add an entry and wait until it is acknowledged; its id. Raises what ended it."""
        return await (await self.append_async(payload, entry))

    def append_from_thread(self, payload: Buffer, entry: int = -1) -> Add:
        """`append_async` for another thread, which waits for room."""
        if self._loop is None:
            raise IllegalOperation(f"ledger {self.ledger}: the writer is not started")
        add = None if self._rate.limited else self._append(payload, entry)
        if add is None:
            return asyncio.run_coroutine_threadsafe(self.append_async(payload, entry), self._loop).result()
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon_threadsafe(self._send)
        return add

    def append_all_from_thread(self, payloads: Buffer, offsets: NDArray[np.int64]) -> int:
        """An entry of each payloads[offsets[k]:offsets[k + 1]], from another thread; waits for room only.

        The id of the last one, -1: nothing was ever added. LedgerClosed, IncorrectParameter.
        """
        if self._loop is None:
            raise IllegalOperation(f"ledger {self.ledger}: the writer is not started")
        at = 0
        while at < len(offsets) - 1:
            taken = 0 if self._rate.limited else self._append_many(payloads, offsets, at)
            if not taken:
                taken = asyncio.run_coroutine_threadsafe(self._some(payloads, offsets, at), self._loop).result()
            at += taken
        return self._window.next - 1

    async def append_all(self, payloads: Buffer, offsets: NDArray[np.int64]) -> int:
        """`append_all_from_thread` on the event loop."""
        at = 0
        while at < len(offsets) - 1:
            at += await self._some(payloads, offsets, at)
            await asyncio.sleep(0)  # what was added leaves before more is
        return self._window.next - 1

    async def _some(self, payloads: Buffer, offsets: NDArray[np.int64], at: int) -> int:
        """Wait until one can be added at least; how many were."""
        while not (taken := self._append_many(payloads, offsets, at)):
            await self._backpressure.wait()
        if self._rate.limited:
            await self._rate.turn(taken)
        return taken

    def _append_many(self, payloads: Buffer, offsets: NDArray[np.int64], at: int) -> int:
        """What there is room for, about a MiB at most; any thread."""
        try:
            return self._window.append_many(payloads, offsets, at)
        except ValueError as error:  # what stands in front of it was added
            raise IncorrectParameter(f"ledger {self.ledger}: {error}") from error
        except BookKeeperError as error:
            raise self._closed_error() from error
        finally:
            if self._window.unsent and not self._scheduled and self._loop is not None:
                self._scheduled = True
                self._loop.call_soon_threadsafe(self._send)

    def _append(self, payload: Buffer, entry: int) -> Add | None:
        try:
            return self._window.append(payload, entry)
        except ValueError as error:
            raise IncorrectParameter(f"ledger {self.ledger}, entry {entry}: {error}") from error
        except KeyError as error:
            raise DuplicateEntryId(f"ledger {self.ledger}, entry {entry}: it was added already") from error
        except BookKeeperError as error:
            raise self._closed_error() from error

    def _closed_error(self) -> BookKeeperError:
        error = self._window.error
        if isinstance(error, ClientClosed):
            return ClientClosed(f"ledger {self.ledger}: the client is closed")
        return LedgerClosed(f"ledger {self.ledger}: nothing can be added any more: {error}")
