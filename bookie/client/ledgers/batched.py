"""Batches of entries that follow each other: one at a time, over what has all at once that are there. Event loop."""

from abc import ABC, abstractmethod
from typing import Self

from bookie.client.entries.verified import EntryBatch

__all__ = ["Batched"]


class Batched(ABC):
    """`async for batch in batched`, or `ready` for all that is there at once."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> EntryBatch:
        got = await self.ready(1)
        if not got:
            raise StopAsyncIteration
        return got[0]

    @abstractmethod
    async def ready(self, limit: int = 0) -> list[EntryBatch]:
        """The batches that follow, as many as are there and one at least; `limit` at most. Empty at the end."""

    @abstractmethod
    async def aclose(self) -> None:
        """Read nothing more. May be called twice."""
