"""Lists that the metadata store returns in pages. Event loop."""

from collections.abc import AsyncIterator, Iterator
from typing import TypeVar

from bookie.client.aio.scope import Scope

__all__ = ["Listing"]

T = TypeVar("T")


class Listing(AsyncIterator[T]):
    """An iterator over the items of all pages. A call that is cancelled loses none of them."""

    def __init__(self, scope: Scope, pages: AsyncIterator[list[T]]) -> None:
        self._scope = scope
        self._pages = pages
        self._items: Iterator[T] = iter(())

    async def __anext__(self) -> T:
        while True:
            for item in self._items:
                return item
            page = await self.page()
            if not page:
                raise StopAsyncIteration
            self._items = iter(page)

    async def page(self) -> list[T]:
        """Return the next page that is not empty, or an empty list at the end."""
        while True:
            page = await self._scope.run(self._next())
            if page is None:
                return []
            if page:
                return page

    async def _next(self) -> list[T] | None:
        try:
            return await anext(self._pages)
        except StopAsyncIteration:
            return None
