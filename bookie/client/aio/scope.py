"""The calls that a client has outstanding. All of them end with ClientClosed when it is closed. Runs on the event
loop.
"""

import asyncio
from collections.abc import Coroutine, Generator
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from bookie.errors import ClientClosed

__all__ = ["Opening", "Scope"]

T = TypeVar("T")


class Scope:
    """The outstanding calls of one client."""

    def __init__(self) -> None:
        self.closed = False
        self._calls: set[asyncio.Task[Any]] = set()

    async def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Return the result of `call`, or raise ClientClosed if the client is closed before the call ends."""
        if self.closed:
            call.close()
            raise _closed()
        task = asyncio.ensure_future(call)
        self._calls.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if not task.cancelled():
                task.cancel()  # the caller was cancelled, not this task
                raise
            if not self.closed:
                raise
            raise _closed() from None
        finally:
            self._calls.discard(task)

    async def close(self) -> None:
        """Cancel all outstanding calls, and refuse new ones."""
        self.closed = True
        calls = list(self._calls)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


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
