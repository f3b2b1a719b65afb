"""Accept entries for a ledger, one or many, on the event loop or from another thread, as soon as there is room.

Only `append_at_once` and methods with `from_thread` in their name may be called from other threads.
"""

import asyncio
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie._fast.client.write_window import Add, WriteWindow
from bookie.client.ledgers.appends import Append
from bookie.client.ledgers.line import Line
from bookie.client.ledgers.throttle import Backpressure, Caller, RateLimit
from bookie.errors import (
    BookKeeperError,
    ClientClosed,
    DuplicateEntryId,
    IllegalOperation,
    IncorrectParameter,
    LedgerClosed,
    TooManyRequests,
)

__all__ = ["Adds"]

T = TypeVar("T")
BURST = 128
"""The adds that are accepted in one turn of the loop before other tasks get theirs."""
INT64 = {"l", "q"} if np.dtype("l").itemsize == np.dtype("i8").itemsize else {"q"}
"""The formats of buffers of int64."""
GAP_WAIT_S = 5.0
"""How long calls wait for an id that a writer that chooses ids has not added yet; another task or thread may be about
to add it.
"""


class Adds(ABC):
    """The part of a `LedgerWriter` that accepts entries. The writer sends them in `_send`."""

    ledger: int
    _window: WriteWindow
    _rate: RateLimit
    _backpressure: Backpressure
    _line: Line
    _loop: asyncio.AbstractEventLoop | None
    _scheduled: bool

    @abstractmethod
    def _send(self) -> None:
        """Send the adds that were accepted to the bookies."""

    def try_append(self, payload: Buffer, entry: int = -1) -> Add | None:
        """Add an entry without waiting. Returns the pending add, or None if there is no room. The rate limit does not
        apply.

        `entry` is the id, for writers that choose ids. Raises LedgerClosed, IncorrectParameter or DuplicateEntryId.
        """
        add = self._append(payload, entry)
        if add is not None and not self._scheduled and self._loop is not None:
            self._scheduled = True
            self._loop.call_soon(self._send)
        return add

    async def append_async(self, payload: Buffer, entry: int = -1) -> Add:
        """Add an entry as soon as there is room and the rate limit allows it. Await the result for the
        acknowledgement.
        """
        if self._window.unsent >= BURST:
            await asyncio.sleep(0)  # let `_send` run before more is added
        add = None if self._rate.limited or self._must_wait(entry) else self.try_append(payload, entry)
        return await self._accepted(payload, entry) if add is None else add

    def append_soon(self, payload: Buffer, entry: int = -1) -> asyncio.Future[int]:
        """Add an entry, at once or when there is room and the rate limit allows it, and return a future of its id.

        Entries are added in the order of the calls. One whose future is cancelled before it was added never is. Raises
        LedgerClosed, IncorrectParameter or DuplicateEntryId, unless only the future can tell, and TooManyRequests if
        too many wait already.
        """
        loop = asyncio.get_running_loop()
        add = None if self._rate.limited or self._must_wait(entry) else self.try_append(payload, entry)
        if add is not None:
            return Append(add, loop)
        copied = self._copied(payload)
        return self._line.join(len(copied), lambda caller: self._accepted(copied, entry, caller))

    @property
    def drained(self) -> bool:
        """Whether `drain` returns at once: there is room, nobody waits for it, and not too much is to be sent first."""
        window = self._window
        if window.unsent >= BURST or self._rate.limited or self._backpressure.waiting or window.error is not None:
            return False
        return window.count < window.count_max and window.bytes < window.bytes_max

    async def drain(self) -> None:
        """Wait until there is room for another add behind those that were called for. Raises LedgerClosed."""
        await self._rate.take(0)
        if self._window.unsent >= BURST:
            await asyncio.sleep(0)
        await self._turn(self._has_room)

    async def _accepted(self, payload: Buffer, entry: int, caller: Caller | None = None) -> Add:
        await self._rate.take()
        try:
            return await self._turn(lambda: self.try_append(payload, entry), caller)
        except BaseException:
            self._rate.took(-1)
            raise

    def _has_room(self) -> bool | None:
        window = self._window
        if window.error is not None:
            raise self._closed_error()
        return (window.count < window.count_max and window.bytes < window.bytes_max) or None

    def _must_wait(self, entry: int = -1) -> bool:
        """Return whether other callers wait for room, so that this one must wait behind them. Any thread.

        Chosen ids are acknowledged in their own order, so they need not wait for each other.
        """
        return entry < 0 and bool(self._backpressure.waiting)

    async def _turn(self, attempt: Callable[[], T | None], caller: Caller | None = None) -> T:
        """Wait for room, at the place of `caller` if there is one.

        Raises TooManyRequests if there can be none before another id is added, which nobody adds.
        """
        room = self._backpressure
        turn = room.turn if caller is None else partial(room.turn_of, caller)
        while self._window.advanced:
            stuck, head = self._window.stuck, self._window.head
            try:
                async with asyncio.timeout(GAP_WAIT_S):
                    return await turn(attempt)
            except TimeoutError:
                if stuck and head == self._window.head and self._window.stuck:
                    raise TooManyRequests(f"no room for another add: {self._gap()}") from None
        return await turn(attempt)

    def _gap(self) -> str:
        """Say which id is missing, for a window that is stuck."""
        window = self._window
        return (
            f"ledger {self.ledger}: entry {window.head} was not added, and {window.count} entries above it cannot be"
            f" acknowledged before it; add entry {window.head}"
        )

    async def append(self, payload: Buffer, entry: int = -1) -> int:
        """Add an entry, wait until it is acknowledged, and return its id. Raises the error that ended the add."""
        return await (await self.append_async(payload, entry))

    def append_at_once(self, payload: Buffer, entry: int = -1) -> Add | None:
        """Add an entry from another thread. Returns None if it must wait for room or because of the rate limit: then
        run `append_async` on the loop.
        """
        if self._loop is None:
            raise IllegalOperation(f"ledger {self.ledger}: the writer is not started")
        add = None if self._rate.limited or self._must_wait(entry) else self._append(payload, entry)
        if add is not None and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon_threadsafe(self._send)
        return add

    def append_all_from_thread(
        self, payloads: Buffer, offsets: NDArray[np.int64], run: Callable[[Coroutine[Any, Any, int]], int]
    ) -> int:
        """Add payloads[offsets[k]:offsets[k + 1]] for each k, from another thread, which waits until there is room.

        `run` runs a coroutine on the loop, and cancels it if the thread does not wait any longer. Returns the id of the
        last entry, or -1 if the ledger has none. Raises LedgerClosed or IncorrectParameter.
        """
        if self._loop is None:
            raise IllegalOperation(f"ledger {self.ledger}: the writer is not started")
        self._check_offsets(offsets)
        at = 0
        while at < len(offsets) - 1:
            taken = 0 if self._rate.limited or self._must_wait() else self._append_many(payloads, offsets, at)
            if not taken:
                taken = run(self._some(payloads, offsets, at))
            at += taken
        return self._window.next - 1

    async def append_all(self, payloads: Buffer, offsets: NDArray[np.int64]) -> int:
        """Add many entries like `append_all_from_thread`, on the event loop."""
        self._check_offsets(offsets)
        at = 0
        while at < len(offsets) - 1:
            at += await self._some(payloads, offsets, at)
            await asyncio.sleep(0)  # let `_send` run before more is added
        return self._window.next - 1

    async def _some(self, payloads: Buffer, offsets: NDArray[np.int64], at: int) -> int:
        """Add as many entries as there is room for, at least one, and return how many were added."""
        if self._rate.limited:
            await self._rate.take(0)  # how many there will be is not known yet; they delay those after them
        taken = await self._turn(lambda: self._append_many(payloads, offsets, at) or None)
        self._rate.took(taken)
        return taken

    async def flush(self, gap_wait_s: float | None = None) -> None:
        """Wait until all entries that were added so far are acknowledged. Raises the error of the first that failed.

        Of a writer that chooses ids: raises IllegalOperation if an id below them has not been added when all entries
        before it are acknowledged, and `gap_wait_s` seconds later (None: GAP_WAIT_S).
        """
        await self._line.accepted()
        if not self._window.advanced:  # there, a caller may wait for an id that nobody adds
            await self._backpressure.passed()
        last = self._window.next - 1
        while self._window.head <= last:
            missing = self._window.first_missing
            if missing > last:
                await self._window.add(last)
            elif missing > self._window.head:
                await self._window.add(missing - 1)
            else:
                await self._gap_filled(missing, GAP_WAIT_S if gap_wait_s is None else gap_wait_s)

    async def _gap_filled(self, missing: int, wait_s: float) -> None:
        """Wait until the id that all pending adds wait for is acknowledged. Raises IllegalOperation if it is not even
        added in time.
        """
        try:
            async with asyncio.timeout(wait_s):
                await self._window.add(missing)
        except TimeoutError:
            if self._window.first_missing == missing:
                raise IllegalOperation(self._gap()) from None

    def _append_many(self, payloads: Buffer, offsets: NDArray[np.int64], at: int) -> int:
        """Add the entries that there is room for, about 1 MiB at most. Any thread."""
        try:
            return self._window.append_many(payloads, offsets, at)
        except ValueError as error:  # the entries before the invalid one were added
            raise IncorrectParameter(f"ledger {self.ledger}: {error}") from error
        except (TypeError, BufferError) as error:
            raise self._no_bytes(payloads) from error
        except BookKeeperError as error:
            raise self._closed_error() from error
        finally:
            if self._window.unsent and not self._scheduled and self._loop is not None:
                self._scheduled = True
                self._loop.call_soon_threadsafe(self._send)

    def _check_offsets(self, offsets: Any) -> None:
        """Refuse offsets that are not an array of int64. Raises IncorrectParameter."""
        try:
            view = memoryview(offsets)
        except TypeError:
            given = type(offsets).__name__
        else:
            if view.ndim == 1 and view.format in INT64 and view.c_contiguous:
                return
            kind = getattr(offsets, "dtype", f"format {view.format!r}")
            given = f"{kind} and shape {view.shape}" + ("" if view.c_contiguous else " with gaps")
        raise IncorrectParameter(
            f"ledger {self.ledger}: offsets={reprlib.repr(offsets)}, of type {given}: they must be int64, of shape"
            " (n + 1,) without gaps; use np.array(offsets, dtype=np.int64)"
        )

    def _append(self, payload: Buffer, entry: int) -> Add | None:
        try:
            return self._window.append(payload, entry)
        except ValueError as error:
            where = f"ledger {self.ledger}" if entry < 0 else f"ledger {self.ledger}, entry {entry}"
            raise IncorrectParameter(f"{where}: {error}") from error
        except (TypeError, BufferError) as error:
            raise self._no_bytes(payload) from error
        except KeyError as error:
            raise DuplicateEntryId(f"ledger {self.ledger}, entry {entry}: it was added before") from error
        except BookKeeperError as error:
            raise self._closed_error() from error

    def _copied(self, payload: Buffer) -> bytes:
        try:
            return bytes(memoryview(payload))
        except (TypeError, BufferError) as error:
            raise self._no_bytes(payload) from error

    def _no_bytes(self, payload: object) -> IncorrectParameter:
        hint = "; use text.encode()" if isinstance(payload, str) else ""
        return IncorrectParameter(
            f"ledger {self.ledger}: a payload of type {type(payload).__name__}: it must be contiguous bytes{hint}"
        )

    def _closed_error(self) -> BookKeeperError:
        error = self._window.error
        if isinstance(error, ClientClosed):
            return ClientClosed(f"ledger {self.ledger}: the client is closed")
        return LedgerClosed(f"ledger {self.ledger}: no more entries can be added: {error}")
