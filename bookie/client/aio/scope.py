"""The calls that a client has outstanding. All of them end with ClientClosed when it is closed. Runs on the event
loop.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Coroutine, Generator
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from bookie.errors import ClientClosed

__all__ = ["Opening", "Scope"]

T = TypeVar("T")
TIDY_S = 5.0
"""How long a client that is closed waits for what its cancelled calls have left to do, in seconds."""


class Scope:
    """The outstanding calls of one client.

    A call runs in the task of its caller. If it ran in a task of its own, a caller that is cancelled just after the
    call has ended would drop the result, and with it the entries that an iterator has handed over.
    """

    def __init__(self) -> None:
        self.closed = False
        self._calling: Counter[asyncio.Task[Any]] = Counter()
        self._ended_here: set[asyncio.Task[Any]] = set()
        """The tasks whose calls are cancelled because the client is closed."""
        self._one_ended = asyncio.Event()
        self.tidying: set[asyncio.Task[None]] = set()
        """What calls that were cancelled have left to do."""

    async def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Return the result of `call`, or raise ClientClosed if the client is closed before the call ends."""
        if self.closed:
            call.close()
            raise _closed()
        task = asyncio.current_task()
        assert task is not None
        cancelled_before = task.cancelling()
        self._calling[task] += 1
        try:
            return await call
        except asyncio.CancelledError:
            if self._take_back(task) and task.cancelling() <= cancelled_before:
                raise _closed() from None
            raise
        finally:
            self._take_back(task)
            self._calling[task] -= 1
            if not self._calling[task]:
                del self._calling[task]
                self._one_ended.set()

    def tidy(self, work: Coroutine[Any, Any, None]) -> None:
        """Run what a call that was cancelled has left to do. A client that is closed waits TIDY_S seconds for it."""
        task = asyncio.ensure_future(work)
        self.tidying.add(task)
        task.add_done_callback(self.tidying.discard)

    async def close(self) -> None:
        """Cancel all outstanding calls, refuse new ones, and wait for what calls have left to do."""
        self.closed = True
        closer = asyncio.current_task()
        for task in self._calling.keys() - self._ended_here - {closer}:
            self._ended_here.add(task)
            task.cancel()
        while self._calling.keys() - {closer}:
            self._one_ended.clear()
            await self._one_ended.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TIDY_S):
                while self.tidying:
                    await asyncio.wait(self.tidying)
        for task in self.tidying:
            task.cancel()
        await asyncio.gather(*self.tidying, return_exceptions=True)

    def _take_back(self, task: asyncio.Task[Any]) -> bool:
        """Take back the cancellation by `close`, if there was one, and return whether there was."""
        if task not in self._ended_here:
            return False
        self._ended_here.discard(task)
        task.uncancel()
        return True


def _closed() -> ClientClosed:
    return ClientClosed("the client is closed; open another BookKeeper")


class Handle(Protocol):
    """A handle that can be used in `async with`."""

    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


H = TypeVar("H", bound=Handle)


class Opening(AbstractAsyncContextManager[H]):
    """A handle that is being opened: `ledger = await opening`, or `async with opening as ledger`."""

    def __init__(self, opening: Coroutine[Any, Any, H]) -> None:
        self._opening = opening
        self._handle: H | None = None

    def __await__(self) -> Generator[Any, None, H]:
        return self._opening.__await__()

    def handle(self) -> Coroutine[Any, Any, H]:
        """Return the coroutine that opens the handle, for callers that cannot await it here."""
        return self._opening

    async def __aenter__(self) -> H:
        self._handle = await self._opening
        return await self._handle.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._handle is not None
        await self._handle.__aexit__(kind, error, trace)
