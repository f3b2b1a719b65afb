"""The pages of a list, one after the other, though callers may be cancelled. Event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["Pages"]

T = TypeVar("T")


class Pages(AsyncIterator[list[T]]):
    """An iterator over the pages that `ask` returns, until it returns None.

    A call that is cancelled leaves the page that it asked for to the next one. An async generator would end instead,
    as if there were no more pages.
    """

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, list[T] | None]]) -> None:
        self._ask = ask
        self._request: asyncio.Task[list[T] | None] | None = None
        self._over = False

    async def __anext__(self) -> list[T]:
        if self._over:
            raise StopAsyncIteration
        if self._request is None:
            self._request = asyncio.ensure_future(self._ask())
            self._request.add_done_callback(_look_at_the_error)
        request = self._request
        await asyncio.wait([request])
        self._request = None
        page = request.result()
        if page is None:
            self._over = True
            raise StopAsyncIteration
        return page


def _look_at_the_error(request: asyncio.Task[Any]) -> None:
    """Keep asyncio from logging the error of a page for which nobody came back."""
    if not request.cancelled():
        request.exception()
