"""Consecutive batches of entries: one at a time, or all that have arrived at once. Event loop."""

from abc import ABC, abstractmethod
from typing import Self

from bookie.client.entries.verified import EntryBatch

__all__ = ["Batched"]


class Batched(ABC):
    """An iterator over batches: `async for batch in batched`, or `ready` for all that have arrived."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> EntryBatch:
        got = await self.ready(1)
        if not got:
            raise StopAsyncIteration
        return got[0]

    @abstractmethod
    async def ready(self, limit: int = 0) -> list[EntryBatch]:
        """Return the next batches, as many as have arrived and at least one; at most `limit`, if that is not 0.

        An empty list means that there are no more.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Stop reading. Further calls do nothing."""
